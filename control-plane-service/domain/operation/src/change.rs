//! What a decision changed, row by row, each row at most once and whole: a store writes these and
//! nothing else, in the transaction that also stores the events and the effects.

use control_plane_plan::Claim;
use kernel::Sha256Digest;

use crate::ClaimRequestId;
use crate::row::{AttemptRow, BindingRow, CommandRow, GateRow, NodeRunRow, OperationRow, RunRow, UpdateRow};

/// One changed row: insert it or overwrite the one with its key.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    Operation(OperationRow),
    Run(RunRow),
    NodeRun(NodeRunRow),
    Attempt(AttemptRow),
    Gate(GateRow),
    Update(UpdateRow),
    Binding(BindingRow),
    Command(CommandRow),
    /// A new plan revision is in force; its document is that of [`crate::OperationState::plan`].
    PlanRevised {
        revision: u32,
        digest: Sha256Digest,
    },
    /// Put the operation into the claim queue, all or none, in this transaction. Answered by
    /// [`crate::Input::ClaimsGranted`], `ClaimsWaiting` or `ClaimsRefused`.
    ClaimsWanted {
        request: ClaimRequestId,
        claims: Vec<Claim>,
        /// Queue behind others, or be refused at once.
        wait: bool,
    },
    /// Let go of the request's claims, held or queued, in this transaction.
    ClaimsReleased {
        request: ClaimRequestId,
    },
}
