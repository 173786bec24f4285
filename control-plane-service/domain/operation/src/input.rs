//! What an operation is told. Inputs may come twice, late and in any order; each names what it answers.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use contracts::{ExecutionResult, ExitCategory};
use control_plane_plan::ClaimMode;
use kernel::id::{AttemptId, CommandId, OperationId, ResourceUid};
use kernel::{ResourceId, Sha256Digest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{ClaimRequestId, Command, EffectId};

/// One thing that an operation is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// The operation exists: begin.
    Started,
    /// All claims of the request are held, as of the transaction that carries this input.
    ClaimsGranted {
        request: ClaimRequestId,
    },
    /// The request stands in the queue behind these.
    ClaimsWaiting {
        request: ClaimRequestId,
        blockers: Vec<Blocker>,
    },
    /// The request was not to wait and something stands in its way.
    ClaimsRefused {
        request: ClaimRequestId,
        blockers: Vec<Blocker>,
    },
    /// The catalog's answer to [`crate::EffectKind::ValidateBindings`]; comparing is done here.
    BindingsValidated {
        request: EffectId,
        bindings: Vec<ValidatedBinding>,
    },
    /// The catalog could not be asked; the effect with this id is given up.
    CatalogUnreachable {
        request: EffectId,
        detail: String,
    },
    /// execution-plane has the attempt.
    AttemptAccepted {
        attempt_id: AttemptId,
    },
    /// execution-plane refused the attempt; it never started and never will.
    AttemptRefused {
        attempt_id: AttemptId,
        category: ExitCategory,
        detail: String,
    },
    /// A runner began the attempt.
    AttemptStarted {
        attempt_id: AttemptId,
        /// By execution-plane's clock.
        at: DateTime<Utc>,
        runner: Option<String>,
    },
    AttemptResult(Box<ExecutionResult>),
    /// The catalog's answer to a resource update.
    UpdateOutcome {
        command_id: CommandId,
        outcome: UpdateOutcome,
    },
    /// "Ask again": some time has passed. Never a promise that anything is due.
    Timer,
    Command(Box<Command>),
}

/// Another operation in the way of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Blocker {
    pub uid: ResourceUid,
    pub resource_id: ResourceId,
    /// The operation that holds the resource or stands before this one in the queue for it.
    pub operation_id: OperationId,
    pub mode: ClaimMode,
    /// Since when it holds or waits.
    pub since: DateTime<Utc>,
    /// It holds the resource; otherwise it waits ahead of this one.
    pub holds: bool,
}

/// A bound resource as the catalog sees it now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValidatedBinding {
    pub slot: String,
    pub uid: ResourceUid,
    pub found: BindingFound,
}

/// Whether the incarnation still exists, and as what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum BindingFound {
    Present {
        /// Computed from the reply exactly as planning computes it for that slot.
        pin: Sha256Digest,
        version: i64,
        connection: Option<Map<String, Value>>,
        /// What is known to differ from what was planned with, for people; may be empty.
        differing: Vec<String>,
    },
    Gone,
}

/// What the catalog did with a resource update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum UpdateOutcome {
    /// Now, or by an earlier delivery of the same command (replayed).
    Applied {
        version: i64,
        /// The resource's pin after it for each slot that binds it, as far as the reply tells enough to
        /// compute them. What we changed ourselves has not moved.
        pins: BTreeMap<String, Sha256Digest>,
    },
    /// The version has moved. Nothing was applied.
    Conflict {
        current_version: i64,
        /// A change since touched what the command touches.
        overlaps: bool,
        /// JSON Pointers to what changed since, for people.
        differing: Vec<String>,
        /// The resource is another incarnation by now.
        other_incarnation: bool,
    },
    Rejected {
        detail: String,
    },
}
