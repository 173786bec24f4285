//! The words for where an operation, a node run, an attempt or a gate stands. One word for one thing
//! from the database column to the button.

use control_plane_plan::Accept;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Declares an enum of plain words with `as_str`, `ALL`, serde and parsing.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
        pub enum $name { $($(#[$vmeta])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            /// Every word.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word in columns and on wires.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The value that a word stands for.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == word)
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// Where an operation stands. `waiting_*` is the state `waiting` with what it waits for.
    OperationStatus {
        /// Accepted; nothing has been asked for yet.
        Pending = "pending",
        /// Holds its claims and validates its bound resources at the catalog.
        Validating = "validating",
        Running = "running",
        Paused = "paused",
        /// A gate waits for a decision and nothing else can go on.
        WaitingGate = "waiting_gate",
        /// A failed node is held for an operator and nothing else can go on.
        WaitingIntervention = "waiting_intervention",
        /// Another operation holds, or is ahead in the queue for, what this one needs.
        WaitingClaim = "waiting_claim",
        Cancelling = "cancelling",
        /// An outcome in the world is not known and someone must settle it. Keeps its claims.
        Unresolved = "unresolved",
        Succeeded = "succeeded",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

impl OperationStatus {
    /// Whether the current run has ended.
    #[must_use]
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

words! {
    /// How a run ended; it never changes.
    RunEnd { Succeeded = "succeeded", Failed = "failed", Cancelled = "cancelled" }
}

words! {
    /// Where a node run stands. From `succeeded` on it has ended, but for `unresolved`, which holds
    /// the operation until someone settles it.
    NodeState {
        Pending = "pending",
        /// Its needs are met; it waits for room, for claims or for the end of a pause.
        Ready = "ready",
        /// It waits for a gate's decision, a backoff, a validation or an operator (see its `wait`).
        Waiting = "waiting",
        Dispatched = "dispatched",
        Running = "running",
        Verifying = "verifying",
        Succeeded = "succeeded",
        Failed = "failed",
        Skipped = "skipped",
        Cancelled = "cancelled",
        TimedOut = "timed_out",
        Unresolved = "unresolved",
    }
}

impl NodeState {
    /// Whether the node run has ended for good.
    #[must_use]
    pub const fn is_end(self) -> bool {
        matches!(
            self,
            Self::Succeeded | Self::Failed | Self::Skipped | Self::Cancelled | Self::TimedOut
        )
    }

    /// Whether something of it may be happening in the world.
    #[must_use]
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Dispatched | Self::Running | Self::Verifying)
    }
}

words! {
    /// Why a node run stands where it stands. Ends are told apart: a lost runner is no failed task.
    NodeReason {
        /// Its `when` was false.
        Condition = "condition",
        /// A needed node ended in a way that this one does not accept.
        NeedsNotMet = "needs_not_met",
        /// A gate that it is behind did not pass.
        GateClosed = "gate_closed",
        /// Of a gate: nothing behind it could start any more, so nobody has to decide.
        NothingBehind = "nothing_behind",
        /// The run ended before its turn came.
        NotStarted = "not_started",
        /// Too many items of its lane failed before its item opened.
        LaneStopped = "lane_stopped",
        /// An operator said so.
        Operator = "operator",
        /// The job ended by itself, unsuccessfully.
        JobFailed = "job_failed",
        /// The runner was lost.
        LostRunner = "lost_runner",
        /// A person ended the attempt.
        Person = "person",
        Timeout = "timeout",
        Policy = "policy",
        Limit = "limit",
        /// execution-plane refused the attempt; nothing ran.
        Refused = "refused",
        /// The job ended well, but its output contract does not hold.
        ContractUnmet = "contract_unmet",
        /// There was nothing to run on, or not all of it was run on.
        NoTargets = "no_targets",
        /// A deferred condition or input could not be computed.
        Expression = "expression",
        /// A gate was rejected.
        Rejected = "rejected",
        /// A gate was not decided in time.
        Expired = "expired",
        /// An item of the fan-out did not succeed.
        Items = "items",
        /// Nothing proves a capability that the update would provide.
        EvidenceMissing = "evidence_missing",
        /// The catalog has another state in a field that the update changes.
        UpdateConflict = "update_conflict",
        /// The catalog rejected the update.
        UpdateRejected = "update_rejected",
        /// A bound resource is not what was planned with.
        BindingsMoved = "bindings_moved",
        /// The operation was cancelled.
        OperationCancelled = "operation_cancelled",
        /// An operator declared that the outcome cannot be waited for.
        Declared = "declared",
        /// Waits for the time of the next attempt.
        Backoff = "backoff",
    }
}

/// The end of a node as an edge sees it; `None` while it has not ended.
#[must_use]
pub const fn accept_of(state: NodeState, reason: Option<NodeReason>) -> Option<Accept> {
    match state {
        NodeState::Succeeded => Some(Accept::Succeeded),
        NodeState::Failed if matches!(reason, Some(NodeReason::LostRunner)) => Some(Accept::Lost),
        NodeState::Failed => Some(Accept::Failed),
        NodeState::TimedOut => Some(Accept::TimedOut),
        NodeState::Skipped => Some(Accept::Skipped),
        NodeState::Cancelled => Some(Accept::Cancelled),
        _ => None,
    }
}

words! {
    /// Where an attempt stands, as far as this operation was told.
    AttemptState {
        /// Its submission was decided; execution-plane has not answered.
        Submitted = "submitted",
        Accepted = "accepted",
        Running = "running",
        /// Refused by execution-plane: it never started.
        Refused = "refused",
        Ended = "ended",
    }
}

words! {
    /// Where one asking of a gate stands.
    GateState {
        Open = "open",
        Passed = "passed",
        Rejected = "rejected",
        Expired = "expired",
        /// The run ended, or the node was cancelled, before a decision.
        Closed = "closed",
        /// Nothing behind it could start any more, so nobody had to decide.
        Withdrawn = "withdrawn",
        /// It had passed, but what it covered has changed since.
        Void = "void",
    }
}

words! {
    /// Where one resource update stands.
    UpdateState {
        Sent = "sent",
        Applied = "applied",
        /// Refused for a moved version in fields that are not ours; another command took its place.
        Rebased = "rebased",
        Conflict = "conflict",
        Rejected = "rejected",
    }
}
