//! Telling the end of an attempt, also to a service that refuses what it is told.
//!
//! A refused report must not leave the attempt leased and unheard of: a job that was over before its
//! start was told would be given out again, and run twice. So a report that is refused for what it
//! says is told again as a bare failure. When even that is refused the service is told that the job
//! ran; then it can only declare the attempt lost, and a person looks at it.

use client_kit::ClientError;
use contracts::{ExecutionResult, ExecutionStatus, ExitCategory, ExitSummary, Isolation, JobStarted};
use execution_plane_api::{FinishRequest, StartPhase, StartedRequest, problem_codes};
use serde_json::{Map, Value};

use super::active::Active;
use super::deliver::{Delivered, PATIENCE};
use super::report::Report;
use crate::runner::{Runner, is_not_ours};
use crate::standing::Standing;

/// Characters of the refused report's message that are told again.
const LONGEST: usize = 1000;

/// Tells the end, until it is accepted or known to be nobody's.
pub(super) async fn finish(runner: &Runner, active: &Active, report: Report, last_output_sequence: u64) -> Delivered {
    let isolation_used = report.isolation_used;
    let mut request = FinishRequest {
        epoch: active.epoch,
        last_output_sequence,
        result: report.result,
    };
    let refused = match tell(runner, active, &request).await {
        Ok(delivered) => return delivered,
        Err(refused) => refused,
    };
    tracing::error!(attempt = %active.id, error = %refused, "the end of an attempt is refused; telling a bare failure");
    request.last_output_sequence = durable(&refused).unwrap_or(last_output_sequence);
    request.result = bare(&request.result, &refused);
    let refused = match tell(runner, active, &request).await {
        Ok(delivered) => return delivered,
        Err(refused) => refused,
    };
    tracing::error!(attempt = %active.id, error = %refused, "no end of this attempt is taken; its report is kept");
    keep(runner, active, &request.result, isolation_used).await
}

/// Says that the job ran, if it did, so that it is not given out again.
async fn keep(
    runner: &Runner,
    active: &Active,
    result: &ExecutionResult,
    isolation_used: Option<Isolation>,
) -> Delivered {
    if let (Some(JobStarted::Yes), Some(isolation_used)) = (result.job_started, isolation_used) {
        let began = StartedRequest {
            epoch: active.epoch,
            phase: StartPhase::Running,
            at: result.started_at.unwrap_or(result.finished_at),
            isolation_used,
        };
        if tell_began(runner, active, &began).await {
            return Delivered::Kept;
        }
    }
    // It may be given out again at once, and come to the same end.
    tokio::time::sleep(PATIENCE.longest_pause).await;
    Delivered::Kept
}

/// What became of it; or the refusal that trying again cannot change.
async fn tell(runner: &Runner, active: &Active, request: &FinishRequest) -> Result<Delivered, ClientError> {
    let mut failed = 0;
    loop {
        failpoints::hit("runner.finish.before");
        let error = match runner.client.finish(active.id, request).await {
            Ok(_) => {
                failpoints::hit("runner.finish.sent");
                return Ok(Delivered::Settled);
            }
            Err(error) => error,
        };
        if is_not_ours(&error) {
            match runner.standing(active).await {
                Standing::Ours => {}
                known => {
                    tracing::warn!(attempt = %active.id, %error, ?known, "the end of an attempt was not accepted");
                    return Ok(Delivered::of(known));
                }
            }
        } else if is_final(&error) {
            return Err(error);
        }
        failed += 1;
        tracing::debug!(attempt = %active.id, %error, failed, "the end could not be told; trying again");
        tokio::time::sleep(PATIENCE.pause(failed)).await;
    }
}

/// Whether the service knows it now.
async fn tell_began(runner: &Runner, active: &Active, began: &StartedRequest) -> bool {
    let mut failed = 0;
    while let Err(error) = runner.client.started(active.id, began).await {
        if is_final(&error) && (!is_not_ours(&error) || runner.standing(active).await != Standing::Ours) {
            tracing::warn!(attempt = %active.id, %error, "that the job ran could not be told");
            return false;
        }
        failed += 1;
        tokio::time::sleep(PATIENCE.pause(failed)).await;
    }
    true
}

/// An answer that trying again cannot change.
fn is_final(error: &ClientError) -> bool {
    error
        .status()
        .is_some_and(|status| (400..500).contains(&status) && !matches!(status, 401 | 408 | 429))
        && error.code() != Some(problem_codes::OUTPUT_INCOMPLETE)
}

/// How much output the service has, when that was what it refused.
fn durable(refused: &ClientError) -> Option<u64> {
    let problem = refused
        .problem()
        .filter(|problem| problem.code == problem_codes::OUTPUT_MISMATCH)?;
    problem.extensions.get("last_sequence")?.as_u64()
}

/// A failure with nothing in it that could be refused. Its category starts no other attempt by itself:
/// the job may have done its work. A doubt about what runs on the targets is kept.
fn bare(result: &ExecutionResult, refused: &ClientError) -> ExecutionResult {
    let was = match result.status {
        ExecutionStatus::Succeeded => "succeeded",
        ExecutionStatus::Failed => "failed",
        ExecutionStatus::Cancelled => "cancelled",
        ExecutionStatus::TimedOut => "timed out",
    };
    let said: String = result.exit_summary.message.chars().take(LONGEST).collect();
    let doubt = result
        .outputs
        .iter()
        .filter_map(|outputs| outputs.get_key_value("remote_processes"))
        .map(|(name, word)| (name.clone(), word.clone()))
        .collect::<Map<String, Value>>();
    ExecutionResult {
        status: ExecutionStatus::Failed,
        exit_summary: ExitSummary {
            code: result.exit_summary.code,
            category: ExitCategory::Unknown,
            message: format!("the service refused the report of a job that had ended as {was} ({said}): {refused}"),
        },
        artifacts: Vec::new(),
        evidence: Vec::new(),
        raw_logs: Vec::new(),
        reason: None,
        outputs: (!doubt.is_empty()).then_some(doubt),
        plan_node_id: result.plan_node_id.clone(),
        ..*result
    }
}
