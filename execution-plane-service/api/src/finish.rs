//! What a runner tells about the start and the end of an attempt.

use chrono::{DateTime, Utc};
use contracts::{ExecutionResult, Isolation};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::attempt::AttemptState;

/// How far a runner is with starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StartPhase {
    /// Fetching content, secrets, building the sandbox. Nothing of the job runs.
    Starting,
    /// The job's process runs.
    Running,
}

/// `POST /v1/runner/attempts/{id}/started`. Information, not permission: the lease alone permits
/// the start, so a quick job may leave this out and only finish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StartedRequest {
    pub epoch: u64,
    pub phase: StartPhase,
    /// The runner's clock; a claim.
    pub at: DateTime<Utc>,
    pub isolation_used: Isolation,
}

/// The attempt's state after it; `cancelling` tells that a cancel waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StartedResponse {
    pub state: AttemptState,
}

/// `POST /v1/runner/attempts/{id}/finish`: the end, once. Refused (409 `output_incomplete`, with
/// the expected sequence) until every chunk up to `last_output_sequence` is durable. A repeat of the
/// same body answers as the first time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FinishRequest {
    pub epoch: u64,
    /// 0 when the job had no output.
    pub last_output_sequence: u64,
    /// `artifacts` and `raw_logs` are filled in by the service from what it stored: leave them empty.
    pub result: ExecutionResult,
}

/// The stored end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FinishResponse {
    pub state: AttemptState,
    pub result: ExecutionResult,
}
