use chrono::{DateTime, Utc};
use kernel::id::{CommandId, OrganizationId, ResourceUid};
use kernel::{DottedName, ResourceId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// What happened. The first three are fixed; the others say what those do not. The set is open: a
/// reader keeps a word it does not know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ProjectionEventType {
    #[serde(rename = "resource.updated")]
    ResourceUpdated,
    #[serde(rename = "capability.provided")]
    CapabilityProvided,
    #[serde(rename = "resource.health_changed")]
    ResourceHealthChanged,
    #[serde(rename = "resource.created")]
    ResourceCreated,
    #[serde(rename = "resource.deleted")]
    ResourceDeleted,
    #[serde(rename = "capability.withdrawn")]
    CapabilityWithdrawn,
    #[serde(rename = "relationship.changed")]
    RelationshipChanged,
    #[serde(untagged)]
    Other(String),
}

kernel::string_schema!(
    ProjectionEventType,
    "What happened; an open set. Fixed: resource.updated, capability.provided, resource.health_changed. Also: resource.created, resource.deleted, capability.withdrawn, relationship.changed.",
    "^[a-z_]+([.][a-z_]+)+$",
    200,
    "resource.updated"
);

/// CatalogProjectionEvent: one fact about one resource version, carrying the resource's full state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CatalogProjectionEvent {
    /// UUIDv5 of uid, version and type: the same fact has the same id wherever it is read.
    pub event_id: Uuid,
    pub event_type: ProjectionEventType,
    pub resource_id: ResourceId,
    pub resource_type: DottedName,
    pub organization_id: OrganizationId,
    /// The resource's version after the change.
    pub version: i64,
    /// The full current state of the resource.
    #[schema(value_type = Object)]
    pub payload: serde_json::Map<String, serde_json::Value>,
    pub occurred_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<ResourceUid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev_version: Option<i64>,
    /// Position in the catalog's total order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_id: Option<CommandId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl ProjectionEventType {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::ResourceUpdated => "resource.updated",
            Self::CapabilityProvided => "capability.provided",
            Self::ResourceHealthChanged => "resource.health_changed",
            Self::ResourceCreated => "resource.created",
            Self::ResourceDeleted => "resource.deleted",
            Self::CapabilityWithdrawn => "capability.withdrawn",
            Self::RelationshipChanged => "relationship.changed",
            Self::Other(word) => word,
        }
    }
}

impl CatalogProjectionEvent {
    /// The id of the fact "`uid` reached `version` by `event_type`".
    #[must_use]
    pub fn id_of(uid: ResourceUid, version: i64, event_type: &ProjectionEventType) -> Uuid {
        Uuid::new_v5(&uid.as_uuid(), format!("{version}/{}", event_type.as_str()).as_bytes())
    }
}
