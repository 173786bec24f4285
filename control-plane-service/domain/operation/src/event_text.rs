//! Events as a person reads them: one sentence each, with what the fields of the event say.

use crate::{Blocker, EventKind, NodeReason, NodeState, OperationStatus, RunEnd};

impl EventKind {
    /// What happened, as a sentence without its end.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::OperationCreated { requester, plan_digest } => {
                format!(
                    "{requester} asked for the operation, by the plan {}",
                    plan_digest.short()
                )
            }
            Self::StatusChanged { to, .. } => format!("the operation {}", status(*to)),
            Self::RunOpened { run, plan_revision } => {
                format!("run {run} begins, at revision {plan_revision} of the plan")
            }
            Self::RunEnded { run, end, detail } => with(format!("run {run} {}", run_end(*end)), detail.as_deref()),
            Self::PlanRevised {
                plan_revision,
                plan_digest,
            } => format!("the plan is at revision {plan_revision} now, {}", plan_digest.short()),
            Self::CommandAccepted { command, reason, .. } => {
                with(format!("{} was asked for", asked(command)), reason.as_deref())
            }
            _ => self.text_of_resources(),
        }
    }

    fn text_of_resources(&self) -> String {
        match self {
            Self::ClaimsWanted => "it asks for its resources".to_owned(),
            Self::ClaimsWaiting { blockers } => format!("it waits for its resources: {}", in_the_way(blockers)),
            Self::ClaimsGranted => "it has its resources, and nobody else does".to_owned(),
            Self::ClaimsReleased => "it lets its resources go".to_owned(),
            Self::ClaimsRefused { blockers } => format!("it does not get its resources: {}", in_the_way(blockers)),
            Self::BindingsValidated => "its resources are what the plan was made with".to_owned(),
            Self::BindingsMoved { resources } => {
                let names: Vec<&str> = resources.iter().map(kernel::ResourceId::as_str).collect();
                format!("not what the plan was made with any more: {}", names.join(", "))
            }
            Self::CatalogUnreachable { detail } => with("the catalog does not answer".to_owned(), Some(detail)),
            Self::UpdateSent {
                node,
                resource_id,
                expected_version,
                ..
            } => format!("{node} tells the catalog about {resource_id}, which should be at version {expected_version}"),
            Self::UpdateApplied {
                node,
                resource_id,
                version,
                ..
            } => format!("{node}: the catalog has {resource_id} at version {version} now"),
            Self::UpdateRebased { node, version, .. } => format!(
                "{node}: the resource is at version {version} by now, in what the update does not touch; it is sent again"
            ),
            Self::UpdateRefused { node, detail, .. } => with(format!("{node}: the catalog refused"), Some(detail)),
            _ => self.text_of_gates(),
        }
    }

    fn text_of_gates(&self) -> String {
        match self {
            Self::GateOpened {
                node,
                digest,
                expires_at,
                ..
            } => {
                let until = expires_at.map(|at| format!(", and is denied at {}", at.format("%Y-%m-%d %H:%M:%S UTC")));
                let until = until.unwrap_or_default();
                format!("gate {node} waits for a decision on {}{until}", digest.short())
            }
            Self::GatePassed { node, digest, by, .. } => {
                format!("{by} approved gate {node}, for exactly {}", digest.short())
            }
            Self::GateRejected { node, by, .. } => format!("{by} rejected gate {node}"),
            Self::GateExpired { node, .. } => format!("gate {node} was not decided in time, and is denied"),
            Self::GateClosed { node, .. } => format!("gate {node} is closed: the run ends before a decision"),
            Self::GateWithdrawn { node, .. } => {
                format!("gate {node} is withdrawn: nothing behind it can start any more")
            }
            Self::GateVoided { node, .. } => {
                format!("the approval of gate {node} is void: what it covers has changed")
            }
            _ => self.text_of_nodes(),
        }
    }

    fn text_of_nodes(&self) -> String {
        match self {
            Self::NodeChanged {
                node,
                to,
                reason,
                message,
                ..
            } => {
                let why = message.as_deref().filter(|message| !message.is_empty());
                let why = why.or(reason.and_then(because));
                with(format!("{node} {}", standing(*to)), why)
            }
            Self::AttemptSubmitted { node, number, .. } => {
                format!("{node} is handed to execution-plane, attempt {number}")
            }
            Self::AttemptAccepted { node, .. } => format!("{node} is queued at execution-plane"),
            Self::AttemptStarted { node, runner, .. } => match runner {
                Some(runner) => format!("{node} runs on {runner}"),
                None => format!("{node} runs"),
            },
            Self::AttemptRefused { node, detail, .. } => with(
                format!("execution-plane refused {node}, nothing of it ran"),
                Some(detail),
            ),
            Self::AttemptCancelRequested { node, force, .. } => match force {
                true => format!("what runs of {node} is to be ended by force"),
                false => format!("what runs of {node} is to end"),
            },
            Self::AttemptEnded {
                node,
                status,
                message,
                late,
                ..
            } => {
                let word = serde_json::to_value(status).ok();
                let word = word.as_ref().and_then(|word| word.as_str()).unwrap_or_default();
                let late = if *late { ", too late to change anything" } else { "" };
                let text = format!("the job of {node} ended: {}{late}", word.replace('_', " "));
                with(
                    text,
                    Some(message).filter(|message| !message.is_empty()).map(String::as_str),
                )
            }
            other => other.as_str().replace('_', " "),
        }
    }
}

fn with(text: String, why: Option<&str>) -> String {
    match why {
        Some(why) => format!("{text}: {why}"),
        None => text,
    }
}

fn in_the_way(blockers: &[Blocker]) -> String {
    let one = |blocker: &Blocker| match blocker.holds {
        true => format!("operation {} has {}", blocker.operation_id, blocker.resource_id),
        false => format!(
            "operation {} is ahead for {}",
            blocker.operation_id, blocker.resource_id
        ),
    };
    blockers.iter().map(one).collect::<Vec<_>>().join(", ")
}

const fn status(status: OperationStatus) -> &'static str {
    match status {
        OperationStatus::Pending => "is accepted",
        OperationStatus::Validating => "has its resources checked at the catalog",
        OperationStatus::Running => "runs",
        OperationStatus::Paused => "is paused",
        OperationStatus::WaitingGate => "waits for a decision at a gate",
        OperationStatus::WaitingIntervention => "waits for an operator, who has to say how a failed node goes on",
        OperationStatus::WaitingClaim => "waits for resources that another operation has or is ahead for",
        OperationStatus::Cancelling => "is being cancelled",
        OperationStatus::Unresolved => {
            "is unresolved: what became of a node is not known, and someone has to settle it"
        }
        OperationStatus::Succeeded => "succeeded",
        OperationStatus::Failed => "failed",
        OperationStatus::Cancelled => "is cancelled",
    }
}

const fn run_end(end: RunEnd) -> &'static str {
    match end {
        RunEnd::Succeeded => "succeeded",
        RunEnd::Failed => "failed",
        RunEnd::Cancelled => "was cancelled",
    }
}

fn asked(command: &str) -> String {
    match command {
        "approve_gate" => "the approval of a gate".to_owned(),
        "reject_gate" => "the rejection of a gate".to_owned(),
        "pause" => "a pause".to_owned(),
        "resume" => "the end of the pause".to_owned(),
        "retry" => "a retry".to_owned(),
        "skip" => "the skip of a node".to_owned(),
        "cancel" => "the cancel".to_owned(),
        "force_cancel" => "the end of the wait for what is being cancelled".to_owned(),
        "resolve" => "the settling of an outcome that was not known".to_owned(),
        other => other.replace('_', " "),
    }
}

const fn standing(state: NodeState) -> &'static str {
    match state {
        NodeState::Pending => "has not had its turn",
        NodeState::Ready => "could start",
        NodeState::Waiting => "waits",
        NodeState::Dispatched => "is started",
        NodeState::Running => "runs",
        NodeState::Verifying => "is verified",
        NodeState::Succeeded => "is done",
        NodeState::Failed => "failed",
        NodeState::Skipped => "is skipped",
        NodeState::Cancelled => "is cancelled",
        NodeState::TimedOut => "timed out",
        NodeState::Unresolved => "is unresolved",
    }
}

/// Why a node stands so, where it has no words of its own for it.
const fn because(reason: NodeReason) -> Option<&'static str> {
    match reason {
        NodeReason::Condition => Some("its condition does not hold"),
        NodeReason::NeedsNotMet => Some("what it needs did not end as it must"),
        NodeReason::GateClosed => Some("a gate before it did not let it through"),
        NodeReason::NothingBehind => Some("nothing behind it can start any more"),
        NodeReason::NotStarted => Some("the run ends before its turn"),
        NodeReason::LaneStopped => Some("too many items before it failed"),
        NodeReason::Operator => Some("an operator said so"),
        NodeReason::LostRunner => Some("its runner was lost"),
        NodeReason::OperationCancelled => Some("the operation is cancelled"),
        NodeReason::Backoff => Some("it is tried again"),
        NodeReason::Items => Some("not every item succeeded"),
        _ => None,
    }
}
