//! Attempts as control-plane submits them and everyone reads them.

use chrono::{DateTime, Utc};
use contracts::{ExecutionResult, ExitReason, Isolation, JobSpec, JobStarted, JobType};
use kernel::id::{AttemptId, OperationId, RunnerId};
use problem::Problem;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Where an attempt stands. `lost` is told apart from `failed` here; the result of a lost attempt
/// reads `failed` with `infrastructure_error` and `job_started`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptState {
    /// Accepted; no runner has it.
    Queued,
    /// Granted to a runner, durably: from now on it may have started.
    Leased,
    /// The runner prepares it (content, secrets, sandbox).
    Starting,
    /// The runner told that the job's process runs.
    Running,
    /// A cancel was asked for and the runner has not yet reported the end.
    Cancelling,
    Succeeded,
    Failed,
    Cancelled,
    TimedOut,
    /// The runner did not come back within the lease and its grace.
    Lost,
}

impl AttemptState {
    /// The end of an attempt never changes.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Succeeded | Self::Failed | Self::Cancelled | Self::TimedOut | Self::Lost
        )
    }
}

/// How much output is durable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputProgress {
    /// The last chunk that is durable; 0 when there is none.
    pub last_sequence: u64,
    pub bytes: u64,
    /// No chunk will follow.
    pub complete: bool,
}

/// One attempt in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttemptSummary {
    pub attempt_id: AttemptId,
    pub operation_id: OperationId,
    pub plan_node_id: String,
    pub job_type: JobType,
    pub environment: String,
    pub state: AttemptState,
    /// Grows by one with every change of state.
    pub version: u64,
    /// Who has or had it.
    pub runner_id: Option<RunnerId>,
    /// By the service's database clock, as all times but those in `result`.
    pub queued_at: DateTime<Utc>,
    pub leased_at: Option<DateTime<Utc>>,
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
    pub cancel_requested_at: Option<DateTime<Utc>>,
    /// Who or what ended it, when it did not end by itself.
    pub reason: Option<ExitReason>,
}

/// One attempt whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Attempt {
    #[serde(flatten)]
    pub summary: AttemptSummary,
    /// The fencing token of its lease; 0 before the first one.
    pub epoch: u64,
    pub deadline_at: Option<DateTime<Utc>>,
    /// The isolation that was really used, as the runner told.
    pub isolation_used: Option<Isolation>,
    pub job_started: Option<JobStarted>,
    /// While queued: why no runner has it yet, for people.
    pub waiting_for: Option<String>,
    pub output: OutputProgress,
    pub spec: JobSpec,
    pub result: Option<ExecutionResult>,
}

/// `GET /v1/attempts`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttemptList {
    pub items: Vec<AttemptSummary>,
    /// Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The head of the feed before the first page: what changes after it is in the feed from here on.
    pub revision: i64,
}

/// Filters of `GET /v1/attempts`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AttemptListQuery {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<OperationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<AttemptState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// At most 1,000; 100 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// `POST /v1/attempt-batches`: up to 256 attempts, each with an outcome of its own. Idempotent by
/// `attempt_id`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttemptBatch {
    #[schema(max_items = 256, min_items = 1)]
    pub attempts: Vec<JobSpec>,
}

/// What became of one submitted attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// Durable and queued (or leased already).
    Accepted,
    /// The same body under the same id was accepted before; nothing changed.
    Replayed,
    /// Not accepted; `problem` says why. Nothing was stored.
    Refused,
    /// Another body was accepted under this id before. Nothing changed.
    Conflict,
}

/// The outcome of one item, at the item's place in the batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SubmissionOutcome {
    /// Null only when the item was too malformed to name its attempt.
    pub attempt_id: Option<AttemptId>,
    pub outcome: AttemptOutcome,
    /// The attempt's state now; null when it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<AttemptState>,
    /// Why it was refused or is in conflict; `errors` point into that JobSpec, `code` is one of
    /// [`crate::problem_codes`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// The outcomes of a batch, in the order of its items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttemptBatchOutcome {
    pub outcomes: Vec<SubmissionOutcome>,
}

/// `POST /v1/attempts/{id}/cancel`. A repeat, and a cancel of a finished attempt, change nothing
/// and answer with the attempt as it stands. An attempt id that was never submitted is 404: the
/// caller's own next submission decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelRequest {
    /// `person` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ExitReason>,
}
