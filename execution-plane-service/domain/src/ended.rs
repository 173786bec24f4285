//! The results that the service itself writes: of attempts that no runner reported on.

use chrono::{DateTime, Utc};
use contracts::{ExecutionResult, ExecutionStatus, ExitCategory, ExitReason, ExitSummary, JobStarted};
use kernel::id::{AttemptId, OperationId};

/// Which attempt, for a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    pub attempt_id: AttemptId,
    pub operation_id: OperationId,
    pub plan_node_id: String,
    /// By the service's clock, if the runner ever told of the start.
    pub started_at: Option<DateTime<Utc>>,
}

/// The result of an attempt that was cancelled before any runner had it: nothing ran.
#[must_use]
pub fn cancelled_in_queue(subject: Subject, reason: ExitReason, now: DateTime<Utc>) -> ExecutionResult {
    let message = "Cancelled before any runner had it; nothing ran.";
    result(
        subject,
        ExecutionStatus::Cancelled,
        ExitCategory::Unknown,
        message,
        JobStarted::No,
        reason,
        now,
    )
}

/// The result of an attempt whose runner was lost. `failed` on the wire; `job_started` says whether
/// it may be tried again.
#[must_use]
pub fn runner_lost(subject: Subject, job_started: JobStarted, now: DateTime<Utc>) -> ExecutionResult {
    let message = match job_started {
        JobStarted::No => "The runner was lost before the job began; nothing ran.",
        JobStarted::Yes => "The runner was lost while the job ran; how it ended is not known.",
        JobStarted::Unknown => "The runner was lost; whether the job had begun is not known.",
    };
    let category = ExitCategory::InfrastructureError;
    result(
        subject,
        ExecutionStatus::Failed,
        category,
        message,
        job_started,
        ExitReason::LostRunner,
        now,
    )
}

fn result(
    subject: Subject,
    status: ExecutionStatus,
    category: ExitCategory,
    message: &str,
    job_started: JobStarted,
    reason: ExitReason,
    now: DateTime<Utc>,
) -> ExecutionResult {
    ExecutionResult {
        operation_id: subject.operation_id,
        plan_node_id: subject.plan_node_id,
        attempt_id: subject.attempt_id,
        status,
        started_at: subject.started_at,
        finished_at: now,
        exit_summary: ExitSummary {
            code: -1,
            category,
            message: message.to_owned(),
        },
        artifacts: Vec::new(),
        evidence: Vec::new(),
        raw_logs: Vec::new(),
        job_started: Some(job_started),
        reason: Some(reason),
        outputs: None,
    }
}
