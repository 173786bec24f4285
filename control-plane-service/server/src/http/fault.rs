//! Faults of the inside as problems for the outside.

use api_kit::{Problem, database_problem, internal_problem};
use control_plane_operation::{Refusal, RefusalCode};
use kernel::id::OperationId;

use crate::engine::EngineError;
use crate::store::StoreError;

/// There is no such operation, or it is another organization's.
pub fn no_operation(id: OperationId) -> Problem {
    Problem::not_found(format_args!("operation {id}"))
}

/// What a store's fault is to a caller.
pub fn of_store(error: StoreError) -> Problem {
    match error {
        StoreError::Database(error) => database_problem(&error),
        error @ StoreError::Corrupt { .. } => internal_problem(&error),
    }
}

/// What an engine's fault is to a caller.
pub fn of_engine(error: EngineError) -> Problem {
    match error {
        EngineError::NotFound(id) => no_operation(id),
        EngineError::Store(error) => of_store(error),
        EngineError::Plan(error) => {
            Problem::new(422, "plan_not_executable", "The plan cannot be carried out").detail(error.to_string())
        }
        error => internal_problem(&error),
    }
}

/// A refused command: a conflict with the operation's state, a role that is missing, or a request that
/// is not valid as such.
pub fn refused(refusal: &Refusal, version: i64) -> Problem {
    let (status, code) = match refusal.code {
        RefusalCode::OperationOver => (409, "operation_over"),
        RefusalCode::RunEnding => (409, "run_ending"),
        RefusalCode::RunNotEnded => (409, "run_not_ended"),
        RefusalCode::AlreadyPaused => (409, "already_paused"),
        RefusalCode::NotPaused => (409, "not_paused"),
        RefusalCode::AlreadyCancelling => (409, "already_cancelling"),
        RefusalCode::NotCancelling => (409, "not_cancelling"),
        RefusalCode::NothingToForce => (409, "nothing_to_force"),
        RefusalCode::StaleRevision => (412, "version_mismatch"),
        RefusalCode::UnknownGate => (404, "not_found"),
        RefusalCode::GateNotOpen => (409, "gate_not_open"),
        RefusalCode::DigestMismatch => (409, "digest_mismatch"),
        RefusalCode::RoleMissing => (403, "role_missing"),
        RefusalCode::RequesterExcluded => (403, "requester_excluded"),
        RefusalCode::UnknownNode => (422, "unknown_node"),
        RefusalCode::NodeState => (409, "node_state"),
        RefusalCode::NothingToRetry => (409, "nothing_to_retry"),
        RefusalCode::NeedsNotRetried => (409, "needs_not_retried"),
        RefusalCode::PlanMismatch => (409, "plan_mismatch"),
        RefusalCode::ReasonRequired => (422, "reason_required"),
        RefusalCode::EvidenceInsufficient => (422, "evidence_insufficient"),
    };
    Problem::new(status, code, "The command was refused")
        .detail(&refusal.detail)
        .remedy(&refusal.remedy)
        .with("current_version", version)
}
