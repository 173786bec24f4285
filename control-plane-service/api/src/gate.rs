use chrono::{DateTime, Utc};
use control_plane_plan::{BlastRadius, GateClaims};
use kernel::id::{PlanId, ResourceUid};
use kernel::{DottedName, ResourceId, Sha256Digest};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// Where a gate stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateState {
    /// It is not its turn yet.
    Pending,
    /// It waits for a decision.
    Open,
    Passed,
    Rejected,
    /// It was not decided in time.
    Expired,
    /// The run ended before a decision.
    Closed,
    /// Nothing behind it could start any more, so nobody had to decide.
    Withdrawn,
    /// It ended without being asked: its condition ruled it out, or its turn did not come.
    NotAsked,
    /// It had passed, but what it covered has changed since.
    Void,
}

/// A decision that a person takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Approve,
    Reject,
}

/// One resource that the nodes behind a gate act on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GateTarget {
    pub resource_id: ResourceId,
    pub uid: ResourceUid,
    pub resource_type: DottedName,
}

/// A gate as its decider sees it: targets, requester, risk, and what exactly a decision binds to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GateView {
    /// One asking of the gate: a gate that is asked again has another id. Null before its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_id: Option<Uuid>,
    /// The gate's node in the plan.
    pub node_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    pub state: GateState,
    pub message: String,
    pub role: String,
    pub requester_excluded: bool,
    pub requested_by: String,
    pub claims: GateClaims,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// What a decision binds to: pack, parameters, bindings, claims and every node behind the gate.
    pub covers_digest: Sha256Digest,
    pub plan_id: PlanId,
    pub plan_digest: Sha256Digest,
    pub plan_revision: u32,
    /// Ids of the nodes behind it.
    pub covers: Vec<String>,
    pub targets: Vec<GateTarget>,
    /// Ids of the nodes behind it that destroy something.
    pub destructive: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blast_radius: Option<BlastRadius>,
    /// What the template says about its risk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risk: Vec<String>,
    /// Whether the caller may decide it now.
    pub may_decide: bool,
}

/// One page of the gates of an operation, in plan order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GateList {
    pub items: Vec<GateView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The head of the feed before the first page: a watch from here misses nothing.
    pub revision: i64,
}

/// `POST /v1/operations/{id}/gates/{gate_id}/decisions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DecisionRequest {
    pub decision: Decision,
    /// `covers_digest` of the gate as the decider saw it.
    pub covers_digest: Sha256Digest,
    /// At most 2,000 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub comment: String,
}
