use chrono::{DateTime, Utc};
use kernel::DottedName;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// What a capability means: the shape of its attributes, and what else its provider provides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CapabilityDefinition {
    pub name: DottedName,
    pub version: i64,
    #[serde(flatten)]
    pub definition: ApplyCapabilityDefinition,
    /// The capabilities that a provider of this one provides too; nearest first.
    pub ancestors: Vec<DottedName>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// A capability definition's own part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ApplyCapabilityDefinition {
    /// Fixed once registered. A provider of the child provides the parent.
    #[serde(default)]
    pub parent: Option<DottedName>,
    #[serde(default)]
    #[schema(max_length = 2000)]
    pub description: String,
    /// JSON Schema (draft 2020-12) of the attributes, besides those of the parents. The attribute `version`,
    /// where there is one, must read as a software version.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub attribute_schema: Option<Value>,
}

/// One page of capability definitions, by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CapabilityDefinitionPage {
    pub items: Vec<CapabilityDefinition>,
    #[serde(default)]
    pub next_cursor: Option<String>,
    /// The head of the feed before the first page: a watch from here misses nothing.
    pub revision: i64,
}
