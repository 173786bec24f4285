use chrono::{DateTime, Utc};
use contracts::{ArtifactRef, EvidenceRef, ExecutionStatus, ExitReason, ExitSummary, JobStarted, JobType, LogRef};
use kernel::id::{AttemptId, ResourceUid};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where a node run stands. The end of a node run never changes within its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeRunState {
    Pending,
    Ready,
    Waiting,
    Dispatched,
    Running,
    Verifying,
    Succeeded,
    Failed,
    Skipped,
    Cancelled,
    TimedOut,
    Unresolved,
}

impl NodeRunState {
    /// Every state, ends last.
    pub const ALL: [Self; 12] = [
        Self::Pending,
        Self::Ready,
        Self::Waiting,
        Self::Dispatched,
        Self::Running,
        Self::Verifying,
        Self::Unresolved,
        Self::Succeeded,
        Self::Failed,
        Self::Skipped,
        Self::Cancelled,
        Self::TimedOut,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Ready => "ready",
            Self::Waiting => "waiting",
            Self::Dispatched => "dispatched",
            Self::Running => "running",
            Self::Verifying => "verifying",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::Unresolved => "unresolved",
        }
    }
}

/// One try of a node's job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttemptView {
    pub attempt_id: AttemptId,
    /// The run of the operation that it belongs to.
    pub run: u32,
    /// From 1, within the node run.
    pub number: u32,
    /// `submitted`, `accepted`, `running`, `refused` or `ended`, as far as the operation was told.
    pub state: String,
    pub dispatched_at: DateTime<Utc>,
    /// Null while no result has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ExecutionStatus>,
    /// When a runner began it; between the hand-over and this it was on its way or queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    /// The runner that it runs on, or ran on. Null for a job that ended as soon as it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_summary: Option<ExitSummary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_started: Option<JobStarted>,
    /// What ended it, when it did not end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ExitReason>,
    /// Its result came after the node had its end: kept as evidence, it changed nothing.
    #[serde(default)]
    pub late: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<ArtifactRef>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceRef>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub raw_logs: Vec<LogRef>,
}

/// A plan node being carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeRun {
    pub node_id: String,
    pub template_node: String,
    pub title: String,
    /// `job`, `gate`, `resource_update` or `join`.
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_type: Option<JobType>,
    /// The element of a fan-out, for people: a resource id or a list element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_uid: Option<ResourceUid>,
    pub state: NodeRunState,
    /// Why it stands so, as a word: `condition`, `needs_not_met`, `lost_runner`, `timeout`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The run of the operation in which it last moved.
    pub run: u32,
    /// The plan revision it was carried out by ("at revision 1").
    pub plan_revision: u32,
    /// Why it stands as it does; for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    pub attempts: Vec<AttemptView>,
}

/// A page of node runs, in plan order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeRunPage {
    pub items: Vec<NodeRun>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The head of the feed before the first page: a watch from here misses nothing.
    pub revision: i64,
}
