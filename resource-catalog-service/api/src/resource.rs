use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use contracts::{EvidenceRef, HealthStatus, LifecycleStatus};
use kernel::id::{CommandId, OperationId, OrganizationId, ResourceUid};
use kernel::{DottedName, ResourceId, Sha256Digest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::Edge;

/// A resource: what it is, how it should be, how it is, and what it can do. This is also the
/// `payload` of every projection event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Resource {
    pub resource_id: ResourceId,
    /// The incarnation. A deleted and re-created resource has another.
    pub uid: ResourceUid,
    pub resource_type: DottedName,
    /// The types that this one derives from, nearest first: what "derived types included" needs.
    #[serde(default)]
    pub resource_type_ancestors: Vec<DottedName>,
    pub organization_id: OrganizationId,
    #[serde(default)]
    pub environment: Option<String>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    pub lifecycle_status: LifecycleStatus,
    pub health: Health,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub desired_state: Map<String, Value>,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub observed_state: Map<String, Value>,
    /// How jobs reach it: address, port, user, host_keys and whatever else its job types read.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub connection: Map<String, Value>,
    /// Grows by one with every change, without gaps.
    pub version: i64,
    /// Grows when what was asked for changes: environment, desired state or connection.
    pub desired_generation: i64,
    #[serde(default)]
    pub provided_capabilities: Vec<ProvidedCapability>,
    #[serde(default)]
    pub edges: Vec<Edge>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// See [`crate::pin_of`].
    pub pin: Sha256Digest,
}

/// How a resource is, as last observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    pub status: HealthStatus,
    #[serde(default)]
    pub reasons: Vec<String>,
    /// Null while nothing was ever observed.
    #[serde(default)]
    pub observed_at: Option<DateTime<Utc>>,
}

/// A capability that a resource has, with the proof of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProvidedCapability {
    pub capability: DottedName,
    /// The capabilities that are provided with it, because they are its parents; nearest first.
    #[serde(default)]
    pub implies: Vec<DottedName>,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub attributes: Map<String, Value>,
    pub evidence: Vec<EvidenceRef>,
    pub provenance: Provenance,
    pub provided_at: DateTime<Utc>,
}

impl ProvidedCapability {
    /// Whether this provides `capability`, itself or as a child of it.
    #[must_use]
    pub fn provides(&self, capability: &DottedName) -> bool {
        self.capability == *capability || self.implies.contains(capability)
    }
}

/// Who made a capability known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Provenance {
    /// An operation of control-plane, by the command it sent.
    Operation {
        operation_id: OperationId,
        command_id: CommandId,
    },
    /// Someone who looked: the subject of the token.
    Observer { subject: String },
}

/// What a resource is asked to be. Absent maps are empty ones; an absent `lifecycle_status` leaves the
/// status alone (`planned` at creation); absent `edges` leave the edges alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApplyResource {
    pub resource_type: DottedName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 63, pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")]
    pub environment: Option<String>,
    /// At most 64; Kubernetes' rules for keys and values.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// At most 64; values of at most 4 KiB.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle_status: Option<LifecycleStatus>,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub desired_state: Map<String, Value>,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub connection: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<Vec<Edge>>,
}

/// A resource to create under an id that nothing has yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateResource {
    pub resource_id: ResourceId,
    pub resource_type: DottedName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 63, pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")]
    pub environment: Option<String>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle_status: Option<LifecycleStatus>,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub desired_state: Map<String, Value>,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub connection: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<Vec<Edge>>,
}

impl CreateResource {
    /// The id, and the rest as one would apply it.
    #[must_use]
    pub fn into_apply(self) -> (ResourceId, ApplyResource) {
        let apply = ApplyResource {
            resource_type: self.resource_type,
            environment: self.environment,
            labels: self.labels,
            annotations: self.annotations,
            lifecycle_status: self.lifecycle_status,
            desired_state: self.desired_state,
            connection: self.connection,
            edges: self.edges,
        };
        (self.resource_id, apply)
    }
}

/// An observer's word that a resource provides a capability; at least one evidence must have passed for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ObserveCapability {
    #[serde(default)]
    #[schema(value_type = Object)]
    pub attributes: Map<String, Value>,
    pub evidence: Vec<EvidenceRef>,
}

/// One page of resources, by resource id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResourcePage {
    pub items: Vec<Resource>,
    /// Null on the last page.
    #[serde(default)]
    pub next_cursor: Option<String>,
    /// The head of the feed before the first page: a watch from here misses nothing.
    pub revision: i64,
}
