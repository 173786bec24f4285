//! Interventions: what a person or program may ask of an operation, and the answer. Every command in
//! every state has a defined answer; what is accepted changes something.

use std::sync::Arc;

use contracts::EvidenceRef;
use kernel::Sha256Digest;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{GateId, InterventionId, OperationStatus, PlanIndex};

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandActor {
    pub subject: String,
    pub roles: Vec<String>,
}

/// One intervention.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    pub id: InterventionId,
    pub actor: CommandActor,
    pub kind: CommandKind,
    /// The operation's `revision` that the asker saw; another one is a conflict.
    pub expected_revision: Option<u64>,
    pub reason: Option<String>,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandKind {
    /// Approve the gate, bound to the digest that the approver saw.
    ApproveGate {
        gate: GateId,
        digest: Sha256Digest,
    },
    RejectGate {
        gate: GateId,
        digest: Sha256Digest,
    },
    Pause,
    Resume,
    /// Of a failed operation: open its next run. Of a live one: try held nodes again.
    Retry {
        selection: RetrySelection,
        /// The plan with changed parameters. Its revision must be the next one.
        revision: Option<Arc<PlanIndex>>,
    },
    /// Go on without the node. It reads skipped, and so do dependents that need its success.
    Skip {
        node: String,
    },
    /// Cooperative: "cancelled" is said once every attempt has ended.
    Cancel,
    /// Of a cancelling operation: what has not ended is declared unresolved, to be settled by hand.
    ForceCancel,
    /// Settle a node whose outcome is not known, or that is held after a failure.
    Resolve {
        node: String,
        resolution: Resolution,
    },
}

impl CommandKind {
    /// The word in columns and on wires.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::ApproveGate { .. } => "approve_gate",
            Self::RejectGate { .. } => "reject_gate",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Retry { .. } => "retry",
            Self::Skip { .. } => "skip",
            Self::Cancel => "cancel",
            Self::ForceCancel => "force_cancel",
            Self::Resolve { .. } => "resolve",
        }
    }
}

/// Which nodes to try again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetrySelection {
    /// Everything that failed.
    AllFailed,
    /// These. The id of a fan-out means its items that did not succeed.
    Nodes(Vec<String>),
}

/// What an unknown outcome was found to be. The command's `reason` is required.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "as")]
pub enum Resolution {
    /// It was done. The evidence must meet the node's output contract.
    Succeeded {
        evidence: Vec<EvidenceRef>,
    },
    Failed,
}

/// The answer to a command; a repeat of the same id gets the first one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CommandOutcome {
    pub id: InterventionId,
    #[serde(flatten)]
    pub answer: CommandAnswer,
}

/// Accepted with the resulting state, or refused with why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum CommandAnswer {
    Accepted {
        status: OperationStatus,
        run: u32,
        plan_revision: u32,
        revision: u64,
    },
    Refused(Refusal),
}

/// Why a command was refused. `code` is stable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Refusal {
    pub code: RefusalCode,
    pub detail: String,
    /// What can be done instead.
    pub remedy: String,
}

/// Stable codes of refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// The operation's run has ended.
    OperationOver,
    /// The run failed and only waits for what still runs.
    RunEnding,
    /// A retry of what is still going on.
    RunNotEnded,
    AlreadyPaused,
    NotPaused,
    AlreadyCancelling,
    /// Force-cancel before cancel.
    NotCancelling,
    /// Force-cancel with nothing left to force.
    NothingToForce,
    StaleRevision,
    UnknownGate,
    /// Decided, expired, closed or void.
    GateNotOpen,
    /// The decision is bound to something else than what the gate covers.
    DigestMismatch,
    /// The actor lacks the role that the gate asks for.
    RoleMissing,
    /// The one who asked for the run may not approve it.
    RequesterExcluded,
    UnknownNode,
    /// The node's state does not allow it.
    NodeState,
    NothingToRetry,
    /// A node that a named one needs would not let it run.
    NeedsNotRetried,
    /// The new plan revision is not the next one, or not of the same scenario.
    PlanMismatch,
    ReasonRequired,
    /// The evidence given does not meet the node's output contract.
    EvidenceInsufficient,
}
