use kernel::id::ResourceUid;
use kernel::{DottedName, ResourceId, Sha256Digest};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How an operation holds a bound resource. `exclusive` conflicts with all, `shared` with exclusive
/// only (several may act at once), `read` with exclusive only and promises to change nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClaimMode {
    Read,
    Shared,
    Exclusive,
}

impl ClaimMode {
    /// Whether two operations may hold one resource in these modes at once.
    #[must_use]
    pub const fn conflicts_with(self, other: Self) -> bool {
        matches!(self, Self::Exclusive) || matches!(other, Self::Exclusive)
    }
}

/// One resource chosen for a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BoundResource {
    pub resource_id: ResourceId,
    pub uid: ResourceUid,
    pub resource_type: DottedName,
    /// SHA-256 over what matching and jobs read of the resource (type, lifecycle, labels, capabilities,
    /// desired generation, connection data, host keys).
    pub pin: Sha256Digest,
}

/// The resources bound to one slot, in binding order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlotBinding {
    pub slot: String,
    pub resource_type: DottedName,
    pub claim: ClaimMode,
    /// The capabilities that matching and jobs read, sorted: pins are made over these alone, so that a
    /// capability gained meanwhile that nobody asked about voids nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pin_capabilities: Vec<DottedName>,
    pub resources: Vec<BoundResource>,
}

/// A claim that the operation must hold while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Claim {
    pub uid: ResourceUid,
    pub resource_id: ResourceId,
    pub mode: ClaimMode,
}
