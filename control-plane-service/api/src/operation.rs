use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use control_plane_plan::{ClaimMode, ScenarioPin};
use kernel::id::{OperationId, PlanId, ResourceUid};
use kernel::{ResourceId, Sha256Digest};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{NodeRunState, PlanRequest};

/// Where an operation stands. `failed` may be opened again by a retry (its next run); the other ends stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OperationState {
    Pending,
    Validating,
    Running,
    Paused,
    /// For a gate, an intervention or claims; `waiting_for` says which.
    Waiting,
    Cancelling,
    Compensating,
    /// An outcome in the world is not known and someone must settle it. It keeps its claims.
    Unresolved,
    Succeeded,
    Failed,
    Cancelled,
    Compensated,
}

impl OperationState {
    /// Every state, ends last.
    pub const ALL: [Self; 12] = [
        Self::Pending,
        Self::Validating,
        Self::Running,
        Self::Paused,
        Self::Waiting,
        Self::Cancelling,
        Self::Compensating,
        Self::Unresolved,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
        Self::Compensated,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Validating => "validating",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Waiting => "waiting",
            Self::Cancelling => "cancelling",
            Self::Compensating => "compensating",
            Self::Unresolved => "unresolved",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Compensated => "compensated",
        }
    }

    /// Whether its run is over.
    #[must_use]
    pub const fn is_end(self) -> bool {
        matches!(
            self,
            Self::Succeeded | Self::Failed | Self::Cancelled | Self::Compensated
        )
    }
}

/// What to do when another operation holds a resource that this one must claim.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// Wait for it, in order.
    #[default]
    Queue,
    /// Fail at once, naming the holder.
    Refuse,
}

/// `POST /v1/operations`: carry out a stored plan, or plan and start in one. Exactly one of `plan_id`
/// and `plan` is given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CreateOperation {
    /// A stored preview. A plan is carried out once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<PlanId>,
    /// The digest that was reviewed; required with `plan_id`, checked when given with `plan`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_digest: Option<Sha256Digest>,
    /// The body of a preview.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanRequest>,
    #[serde(default)]
    pub on_overlap: Overlap,
    /// For people; at most 500 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// At most 32.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// The plan that an operation follows now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperationPlan {
    pub plan_id: PlanId,
    /// 1 for the plan it was started with; a retry with changed input makes the next.
    pub revision: u32,
    pub digest: Sha256Digest,
    pub scenario: ScenarioPin,
    pub environment: String,
}

/// One run of an operation: from its start, or a retry, to its end. The end of a run never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunView {
    pub number: u32,
    pub started_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<OperationState>,
    pub started_by: String,
}

/// What an operation that does not move waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum WaitingFor {
    /// Claims that another operation holds, or waits for since before.
    Claim {
        resource_id: ResourceId,
        uid: ResourceUid,
        mode: ClaimMode,
        /// The operation in the way: it holds the resource, or is ahead in the queue for it.
        holder: OperationId,
        /// Since when it holds, or waits.
        since: DateTime<Utc>,
        /// It holds the resource; else it is ahead in the queue.
        #[serde(default = "crate::operation::holds")]
        holds: bool,
        why: String,
    },
    /// A decision at a gate.
    Gate {
        gate_id: Uuid,
        node_id: String,
        role: String,
        /// Subjects that may not decide it, whatever their roles.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        excluded: Vec<String>,
        since: DateTime<Utc>,
    },
    /// An operator; `choices` are the interventions that would be taken.
    Intervention {
        node_id: String,
        why: String,
        /// What became of the node is not known; else it failed and is held.
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        unresolved: bool,
        choices: Vec<String>,
        since: DateTime<Utc>,
    },
    /// Another service that does not answer.
    Dependency {
        name: String,
        since: DateTime<Utc>,
        tries: u32,
        last_error: String,
    },
    /// A point in time (the next attempt of a node).
    Time { node_id: String, until: DateTime<Utc> },
}

/// What an answer without the word means.
const fn holds() -> bool {
    true
}

/// How many node runs are in which state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperationCounts {
    pub nodes: u64,
    pub by_state: BTreeMap<NodeRunState, u64>,
}

/// One operation in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperationSummary {
    pub id: OperationId,
    pub state: OperationState,
    /// Counts every change; sent as `ETag`.
    pub version: i64,
    pub run: u32,
    pub template: String,
    pub environment: String,
    pub requested_by: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// One operation, whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Operation {
    #[serde(flatten)]
    pub summary: OperationSummary,
    pub reason: String,
    pub on_overlap: Overlap,
    pub plan: OperationPlan,
    pub counts: OperationCounts,
    /// Everything that it waits for; empty when it moves or is over.
    pub waiting_for: Vec<WaitingFor>,
    /// Why it ended, or stands, as it does; for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// A failure was handled by nodes that accept it; the operation still reads failed.
    pub handled: bool,
    pub runs: Vec<RunView>,
    /// The sequence of its last event.
    pub last_event: i64,
}

/// A page of operations, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperationPage {
    pub items: Vec<OperationSummary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The feed revision that was the head before the first page: a watch from it misses nothing.
    pub revision: i64,
}
