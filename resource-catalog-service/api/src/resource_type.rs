use chrono::{DateTime, Utc};
use contracts::LifecycleStatus;
use kernel::DottedName;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::EdgeType;

/// A resource type as it was registered, with what it amounts to once its parents are counted in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResourceType {
    pub name: DottedName,
    /// Part of the built-in taxonomy: it cannot be changed.
    pub built_in: bool,
    pub version: i64,
    #[serde(flatten)]
    pub definition: ApplyResourceType,
    pub effective: EffectiveResourceType,
    /// Null for a built-in type.
    #[serde(default)]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub updated_at: Option<DateTime<Utc>>,
}

/// A type's own part. A derived type inherits and may only narrow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ApplyResourceType {
    /// Fixed once registered.
    #[serde(default)]
    pub parent: Option<DottedName>,
    #[serde(default)]
    #[schema(max_length = 2000)]
    pub description: String,
    /// The part of a resource id before the slash. Required without a parent, else inherited.
    #[serde(default)]
    #[schema(max_length = 63, pattern = "^[a-z][a-z0-9-]*$")]
    pub id_prefix: Option<String>,
    /// JSON Schema (draft 2020-12) that a desired state must satisfy, besides those of the parents.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub desired_state_schema: Option<Value>,
    /// JSON Schema (draft 2020-12) that an observed state must satisfy, besides those of the parents.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub observed_state_schema: Option<Value>,
    /// Allowed lifecycle transitions. Absent: the parent's, or the default ones.
    #[serde(default)]
    pub lifecycle_transitions: Option<Vec<Transition>>,
    /// Allowed edges. Absent: the parent's, or none.
    #[serde(default)]
    pub edges: Option<Vec<EdgeRule>>,
}

/// From one lifecycle status to any of some others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Transition {
    pub from: LifecycleStatus,
    pub to: Vec<LifecycleStatus>,
}

/// What edges of one type may leave a resource of this type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EdgeRule {
    pub edge_type: EdgeType,
    /// Types (derived ones included) that the edge may point at.
    pub targets: Vec<DottedName>,
    /// Most edges of this type leaving one resource. Absent: no bound but the general one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_targets: Option<u32>,
    /// Most edges of this type, from resources of this type, arriving at one target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_sources: Option<u32>,
    /// Whether following edges of this type may lead back to where one began.
    #[serde(default)]
    pub cycles_allowed: bool,
    #[serde(default)]
    pub on_delete: OnDelete,
    /// Whether the target's health counts for the source.
    #[serde(default)]
    pub carries_health: bool,
}

/// What becomes of an edge when its target is to be deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDelete {
    /// The target stays while the edge is there.
    #[default]
    Restrict,
    /// The edge goes with the target.
    Detach,
}

/// A type with its parents counted in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EffectiveResourceType {
    /// Nearest first.
    pub ancestors: Vec<DottedName>,
    pub id_prefix: String,
    pub lifecycle_transitions: Vec<Transition>,
    pub edges: Vec<EdgeRule>,
}

/// One page of resource types, by name; built-in ones included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResourceTypePage {
    pub items: Vec<ResourceType>,
    #[serde(default)]
    pub next_cursor: Option<String>,
    /// The head of the feed before the first page: a watch from here misses nothing.
    pub revision: i64,
}
