//! The story of an operation: gapless, each event with actor, cause and time.

use chrono::{DateTime, Utc};
use contracts::{ExecutionStatus, ExitCategory, ExitReason};
use kernel::id::{AttemptId, CommandId};
use kernel::{ResourceId, Sha256Digest};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Blocker, GateId, InterventionId, NodeReason, NodeState, OperationStatus, RunEnd};

/// One event of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Position in the operation's events, gapless from 1.
    pub sequence: u64,
    pub at: DateTime<Utc>,
    pub actor: Actor,
    pub cause: Cause,
    #[serde(flatten)]
    pub kind: EventKind,
}

/// Who made it happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "kind", content = "subject")]
pub enum Actor {
    Person(String),
    ControlPlane,
    ExecutionPlane,
    Catalog,
}

/// What made it happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "kind", content = "id")]
pub enum Cause {
    Start,
    Claims,
    Validation,
    Timer,
    Command(InterventionId),
    Attempt(AttemptId),
    Update(CommandId),
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum EventKind {
    OperationCreated {
        requester: String,
        plan_digest: Sha256Digest,
    },
    StatusChanged {
        from: OperationStatus,
        to: OperationStatus,
    },
    RunOpened {
        run: u32,
        plan_revision: u32,
    },
    RunEnded {
        run: u32,
        end: RunEnd,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    PlanRevised {
        plan_revision: u32,
        plan_digest: Sha256Digest,
    },
    ClaimsWanted,
    ClaimsWaiting {
        blockers: Vec<Blocker>,
    },
    ClaimsGranted,
    ClaimsReleased,
    ClaimsRefused {
        blockers: Vec<Blocker>,
    },
    BindingsValidated,
    BindingsMoved {
        resources: Vec<ResourceId>,
    },
    CatalogUnreachable {
        detail: String,
    },
    NodeChanged {
        run: u32,
        node: String,
        from: NodeState,
        to: NodeState,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<NodeReason>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    AttemptSubmitted {
        run: u32,
        node: String,
        attempt_id: AttemptId,
        number: u32,
    },
    AttemptAccepted {
        node: String,
        attempt_id: AttemptId,
    },
    /// Not told of a job that ends at once.
    AttemptStarted {
        node: String,
        attempt_id: AttemptId,
        /// By execution-plane's clock.
        started_at: DateTime<Utc>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        runner: Option<String>,
    },
    AttemptRefused {
        node: String,
        attempt_id: AttemptId,
        detail: String,
    },
    AttemptCancelRequested {
        node: String,
        attempt_id: AttemptId,
        force: bool,
    },
    AttemptEnded {
        node: String,
        attempt_id: AttemptId,
        status: ExecutionStatus,
        category: ExitCategory,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<ExitReason>,
        message: String,
        /// It came after the node had its end and changed nothing.
        late: bool,
    },
    GateOpened {
        node: String,
        gate_id: GateId,
        digest: Sha256Digest,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<DateTime<Utc>>,
    },
    GatePassed {
        node: String,
        gate_id: GateId,
        digest: Sha256Digest,
        by: String,
    },
    GateRejected {
        node: String,
        gate_id: GateId,
        by: String,
    },
    GateExpired {
        node: String,
        gate_id: GateId,
    },
    GateClosed {
        node: String,
        gate_id: GateId,
    },
    /// Nothing behind it can start any more; nobody has to decide.
    GateWithdrawn {
        node: String,
        gate_id: GateId,
    },
    GateVoided {
        node: String,
        gate_id: GateId,
    },
    UpdateSent {
        node: String,
        command_id: CommandId,
        resource_id: ResourceId,
        expected_version: i64,
    },
    UpdateApplied {
        node: String,
        command_id: CommandId,
        resource_id: ResourceId,
        version: i64,
    },
    UpdateRebased {
        node: String,
        command_id: CommandId,
        replaced_by: CommandId,
        version: i64,
    },
    UpdateRefused {
        node: String,
        command_id: CommandId,
        detail: String,
    },
    CommandAccepted {
        command: String,
        id: InterventionId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

impl EventKind {
    /// The event's type, as in `type` of its JSON.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::OperationCreated { .. } => "operation_created",
            Self::StatusChanged { .. } => "status_changed",
            Self::RunOpened { .. } => "run_opened",
            Self::RunEnded { .. } => "run_ended",
            Self::PlanRevised { .. } => "plan_revised",
            Self::ClaimsWanted => "claims_wanted",
            Self::ClaimsWaiting { .. } => "claims_waiting",
            Self::ClaimsGranted => "claims_granted",
            Self::ClaimsReleased => "claims_released",
            Self::ClaimsRefused { .. } => "claims_refused",
            Self::BindingsValidated => "bindings_validated",
            Self::BindingsMoved { .. } => "bindings_moved",
            Self::CatalogUnreachable { .. } => "catalog_unreachable",
            Self::NodeChanged { .. } => "node_changed",
            Self::AttemptSubmitted { .. } => "attempt_submitted",
            Self::AttemptAccepted { .. } => "attempt_accepted",
            Self::AttemptStarted { .. } => "attempt_started",
            Self::AttemptRefused { .. } => "attempt_refused",
            Self::AttemptCancelRequested { .. } => "attempt_cancel_requested",
            Self::AttemptEnded { .. } => "attempt_ended",
            Self::GateOpened { .. } => "gate_opened",
            Self::GatePassed { .. } => "gate_passed",
            Self::GateRejected { .. } => "gate_rejected",
            Self::GateExpired { .. } => "gate_expired",
            Self::GateClosed { .. } => "gate_closed",
            Self::GateWithdrawn { .. } => "gate_withdrawn",
            Self::GateVoided { .. } => "gate_voided",
            Self::UpdateSent { .. } => "update_sent",
            Self::UpdateApplied { .. } => "update_applied",
            Self::UpdateRebased { .. } => "update_rebased",
            Self::UpdateRefused { .. } => "update_refused",
            Self::CommandAccepted { .. } => "command_accepted",
        }
    }
}
