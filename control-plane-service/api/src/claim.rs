use chrono::{DateTime, Utc};
use control_plane_plan::ClaimMode;
use kernel::ResourceId;
use kernel::id::{OperationId, ResourceUid};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An operation that holds a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClaimHolder {
    pub operation_id: OperationId,
    pub run: u32,
    pub mode: ClaimMode,
    pub since: DateTime<Utc>,
    /// Why: the scenario and who asked for it.
    pub why: String,
}

/// An operation that waits for a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClaimWaiter {
    pub operation_id: OperationId,
    pub run: u32,
    pub mode: ClaimMode,
    pub since: DateTime<Utc>,
    pub why: String,
    /// The operation in its way: a holder, or a waiter before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<OperationId>,
}

/// One claimed resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClaimView {
    pub resource_id: ResourceId,
    pub uid: ResourceUid,
    pub holders: Vec<ClaimHolder>,
    /// In the order they will be served.
    pub waiters: Vec<ClaimWaiter>,
}

/// A page of claims, by uid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClaimPage {
    pub items: Vec<ClaimView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The head of the feed before the first page: a watch from here misses nothing.
    pub revision: i64,
}
