//! Whether a job's result makes its node succeed. Evidence decides, not the exit code: a failed or
//! inconclusive check fails the node although the job said zero, and a job that says one because the work
//! was already done succeeds when every check passed. Running on nothing is no success.

use contracts::{EvidenceRef, EvidenceResult, ExecutionResult, ExecutionStatus, ExitCategory, ExitReason, JobStarted};
use control_plane_plan::Job;
use kernel::ResourceId;

use crate::row::Failure;
use crate::{NodeReason, NodeState};

/// What a result makes of its node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    Succeeded,
    Failed {
        failure: Failure,
        /// Another attempt is allowed by the policy's categories, and harmless.
        again: bool,
    },
    /// Nobody knows what the job did.
    Unresolved {
        reason: NodeReason,
        message: String,
    },
}

/// Judges `result` of a job that was sent to `targets`.
pub(crate) fn judge(job: &Job, targets: &[ResourceId], result: &ExecutionResult) -> Verdict {
    let contract = holds(job, targets, result);
    let by_itself = result.reason.is_none();
    match result.status {
        ExecutionStatus::Succeeded => match contract {
            Ok(()) => Verdict::Succeeded,
            Err((reason, message)) => Verdict::Failed {
                failure: failure(NodeState::Failed, reason, message),
                again: may_repeat(job, result) && job.retry.on.contains(&ExitCategory::ValidationError),
            },
        },
        ExecutionStatus::Failed if by_itself && proven(job, result) && contract.is_ok() => Verdict::Succeeded,
        ExecutionStatus::Failed if unknown_outcome(job, result) => Verdict::Unresolved {
            reason: reason_of(result),
            message: result.exit_summary.message.clone(),
        },
        ExecutionStatus::Failed => Verdict::Failed {
            failure: failure(
                NodeState::Failed,
                reason_of(result),
                result.exit_summary.message.clone(),
            ),
            again: matches!(result.reason, None | Some(ExitReason::LostRunner))
                && may_repeat(job, result)
                && job.retry.on.contains(&result.exit_summary.category),
        },
        ExecutionStatus::Cancelled => Verdict::Failed {
            failure: failure(
                NodeState::Cancelled,
                reason_of(result),
                result.exit_summary.message.clone(),
            ),
            again: false,
        },
        ExecutionStatus::TimedOut => Verdict::Failed {
            failure: failure(
                NodeState::TimedOut,
                NodeReason::Timeout,
                result.exit_summary.message.clone(),
            ),
            again: false,
        },
    }
}

pub(crate) const fn failure(state: NodeState, reason: NodeReason, message: String) -> Failure {
    Failure { state, reason, message }
}

/// Whether the job began, as far as anybody knows.
pub(crate) fn started(result: &ExecutionResult) -> JobStarted {
    match (result.job_started, result.started_at) {
        (Some(told), _) => told,
        (None, Some(_)) => JobStarted::Yes,
        (None, None) => JobStarted::Unknown,
    }
}

/// A second run does no harm: it never began, or running it twice is as good as once.
fn may_repeat(job: &Job, result: &ExecutionResult) -> bool {
    started(result) == JobStarted::No || job.idempotent || !job.mutating
}

/// It did not end by itself, or nobody saw it end, and what it did matters.
fn unknown_outcome(job: &Job, result: &ExecutionResult) -> bool {
    let unseen = result.reason == Some(ExitReason::LostRunner)
        || (result.reason.is_none()
            && result.exit_summary.category == ExitCategory::InfrastructureError
            && started(result) == JobStarted::Unknown);
    unseen && !may_repeat(job, result)
}

/// The contract asks for evidence at all, and the job ended by its own fault at worst.
fn proven(job: &Job, result: &ExecutionResult) -> bool {
    let own = matches!(
        result.exit_summary.category,
        ExitCategory::ValidationError | ExitCategory::Unknown | ExitCategory::Success
    );
    own && !job.output_contract.evidence.is_empty()
}

fn reason_of(result: &ExecutionResult) -> NodeReason {
    match (result.reason, result.status) {
        (Some(ExitReason::LostRunner), _) => NodeReason::LostRunner,
        (Some(ExitReason::Timeout), _) => NodeReason::Timeout,
        (Some(ExitReason::Policy), _) => NodeReason::Policy,
        (Some(ExitReason::Limit), _) => NodeReason::Limit,
        (Some(ExitReason::Person), _) | (None, ExecutionStatus::Cancelled) => NodeReason::Person,
        (None, _) if result.exit_summary.category == ExitCategory::PolicyError => NodeReason::Policy,
        (None, _) => NodeReason::JobFailed,
    }
}

fn holds(job: &Job, targets: &[ResourceId], result: &ExecutionResult) -> Result<(), (NodeReason, String)> {
    let executed = result
        .outputs
        .as_ref()
        .and_then(|outputs| outputs.get("targets_executed"));
    if let Some(executed) = executed.and_then(serde_json::Value::as_u64)
        && executed != targets.len() as u64
    {
        let message = format!("ran on {executed} of {} targets", targets.len());
        return Err((NodeReason::NoTargets, message));
    }
    for name in &job.output_contract.artifacts {
        if !result
            .artifacts
            .iter()
            .any(|artifact| artifact.name.as_ref() == Some(name))
        {
            return Err((NodeReason::ContractUnmet, format!("artifact {name} is missing")));
        }
    }
    evidence_holds(&job.output_contract.evidence, targets, &result.evidence)
        .map_err(|message| (NodeReason::ContractUnmet, message))
}

/// Every name has evidence, all of it passed, and where evidence speaks of resources, of every target.
pub(crate) fn evidence_holds(names: &[String], targets: &[ResourceId], evidence: &[EvidenceRef]) -> Result<(), String> {
    for name in names {
        let of_name = || evidence.iter().filter(|evidence| evidence.name.as_ref() == Some(name));
        if let Some(against) = of_name().find(|evidence| evidence.result != EvidenceResult::Passed) {
            let word = match against.result {
                EvidenceResult::Inconclusive => "is inconclusive",
                _ => "failed",
            };
            let place = against
                .resource_id
                .as_ref()
                .map(|id| format!(" on {id}"))
                .unwrap_or_default();
            return Err(format!("evidence {name} {word}{place}"));
        }
        if of_name().next().is_none() {
            return Err(format!("evidence {name} is missing"));
        }
        let speaks_of = |id: &ResourceId| of_name().any(|evidence| evidence.resource_id.as_ref() == Some(id));
        if of_name().any(|evidence| evidence.resource_id.is_some())
            && let Some(unseen) = targets.iter().find(|target| !speaks_of(target))
        {
            return Err(format!("evidence {name} is missing for {unseen}"));
        }
    }
    Ok(())
}
