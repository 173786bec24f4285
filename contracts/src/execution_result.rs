use chrono::{DateTime, Utc};
use kernel::Sha256Digest;
use kernel::id::{AttemptId, OperationId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{ArtifactRef, EvidenceRef};

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionStatus {
    Succeeded,
    Failed,
    Cancelled,
    TimedOut,
}

/// Why it ended so. Set by the runner, never by what the job prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExitCategory {
    Success,
    ValidationError,
    InfrastructureError,
    PolicyError,
    Unknown,
}

/// Whether a job that did not end by itself had begun. `unknown` must not be retried blindly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobStarted {
    Yes,
    No,
    Unknown,
}

/// Who or what ended an attempt that did not end by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExitReason {
    Person,
    Timeout,
    LostRunner,
    Policy,
    Limit,
}

/// The end of an attempt in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExitSummary {
    /// The job's exit code; -1 when there was none.
    pub code: i32,
    pub category: ExitCategory,
    /// A short human-readable summary; never a secret.
    pub message: String,
}

/// A finished log bundle of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogRef {
    pub id: Uuid,
    pub uri: String,
    pub sha256: Sha256Digest,
    pub size_bytes: u64,
    pub lines: u64,
}

/// ExecutionResult: what execution-plane returns to control-plane, exactly one for each attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecutionResult {
    pub operation_id: OperationId,
    pub plan_node_id: String,
    pub attempt_id: AttemptId,
    pub status: ExecutionStatus,
    /// Null when the job never started.
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: DateTime<Utc>,
    pub exit_summary: ExitSummary,
    pub artifacts: Vec<ArtifactRef>,
    pub evidence: Vec<EvidenceRef>,
    pub raw_logs: Vec<LogRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_started: Option<JobStarted>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ExitReason>,
    /// Structured outputs declared by the job type (for example ansible's per-host statistics).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub outputs: Option<serde_json::Map<String, serde_json::Value>>,
}
