use kernel::id::{CommandId, OperationId, ResourceUid};
use kernel::{DottedName, ResourceId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{EvidenceRef, HealthStatus, LifecycleStatus};

/// Capabilities gained and lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProvidedCapabilities {
    #[serde(default)]
    pub add: Vec<DottedName>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<DottedName>,
    /// Attributes of added capabilities, by capability name, checked against their definitions.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    #[schema(value_type = Object)]
    pub attributes: serde_json::Map<String, serde_json::Value>,
}

/// What became true of the resource. Absent fields are left alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Changes {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle_status: Option<LifecycleStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_status: Option<HealthStatus>,
    /// An RFC 7396 JSON merge patch on the observed state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub observed_state_patch: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provided_capabilities: Option<ProvidedCapabilities>,
}

/// ResourceUpdateCommand: what control-plane tells the catalog once an operation made it true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResourceUpdateCommand {
    /// The idempotency key, for ever.
    pub command_id: CommandId,
    pub operation_id: OperationId,
    pub resource_id: ResourceId,
    pub expected_version: i64,
    pub changes: Changes,
    pub evidence: Vec<EvidenceRef>,
    /// The incarnation that was meant; another one is a conflict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<ResourceUid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}
