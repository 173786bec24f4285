//! The state of an operation as rows: what a store keeps, one type a table. [`crate::OperationState`]
//! is built from them and every decision says which of them changed, whole.

use chrono::{DateTime, Utc};
use contracts::{ArtifactRef, Changes, EvidenceRef, ExecutionResult, ExitSummary};
use kernel::Sha256Digest;
use kernel::id::{AttemptId, CommandId, OperationId, OrganizationId, ResourceUid};
use kernel::{DottedName, ResourceId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    AttemptState, Blocker, ClaimRequestId, CommandOutcome, EffectId, GateId, GateState, NodeReason, NodeState,
    OperationStatus, RunEnd, UpdateState,
};

/// One operation. Key: `id`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationRow {
    pub id: OperationId,
    pub organization_id: OrganizationId,
    /// Subject of the one who asked for it.
    pub requester: String,
    pub created_at: DateTime<Utc>,
    pub status: OperationStatus,
    /// The current run, from 1.
    pub run: u32,
    /// The current plan revision, from 1.
    pub plan_revision: u32,
    /// Counts decisions that changed something; what `expected_revision` of a command is compared with.
    pub revision: u64,
    /// Number of the last event; events are gapless from 1.
    pub last_event: u64,
    /// Time of the last event. Time never runs backwards within an operation.
    pub last_event_at: DateTime<Utc>,
    /// The rest, of interest to deciding only: one JSON column.
    pub progress: Progress,
}

/// What steers the current run beside its node runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Whether to queue for claims that another operation holds, or to fail at once.
    pub wait_for_claims: bool,
    pub claims: ClaimsState,
    pub validation: ValidationState,
    /// The bound resources were found valid once in this run: its nodes may move.
    pub begun: bool,
    pub paused: bool,
    pub cancel: Option<CancelProgress>,
    /// The node whose failure stopped the run: nothing further starts.
    pub stopped_by: Option<String>,
    /// Why the run fails beside failed nodes: claims refused, bindings moved.
    pub failure: Option<RunFailure>,
}

/// How the operation stands to its claims.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum ClaimsState {
    /// Before the start, or after the end of a run.
    #[default]
    None,
    Wanted {
        request: ClaimRequestId,
        since: DateTime<Utc>,
        /// Who stands in the way, as last told; empty while nothing was told.
        blockers: Vec<Blocker>,
    },
    Held {
        request: ClaimRequestId,
        since: DateTime<Utc>,
    },
    /// Let go while a gate waits.
    Released { since: DateTime<Utc> },
}

/// How the bound resources stand to the catalog.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum ValidationState {
    #[default]
    Needed,
    Asked {
        request: EffectId,
        failures: u32,
    },
    /// The catalog could not be asked; it is asked again at `at`.
    Again {
        at: DateTime<Utc>,
        failures: u32,
    },
    Valid {
        at: DateTime<Utc>,
    },
}

/// A cancel under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelProgress {
    pub requested_at: DateTime<Utc>,
    pub by: String,
    /// When attempts that have not ended by then are cancelled by force.
    pub force_at: DateTime<Utc>,
    pub forced: bool,
}

/// Why a run failed as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum RunFailure {
    ClaimsRefused {
        blockers: Vec<Blocker>,
    },
    BindingsMoved {
        moved: Vec<Moved>,
    },
    /// Nothing failed, but nodes did not start for want of what an operator skipped.
    LeftOut(LeftOut),
}

/// What an operator's skips kept from starting. Names at most [`LeftOut::NAMED`] of each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Skipped by an operator.
    pub skipped: Vec<String>,
    /// Needed their success.
    pub not_started: Vec<String>,
    /// How many did not start.
    pub count: usize,
}

impl LeftOut {
    /// More are counted, not named.
    pub const NAMED: usize = 20;
}

impl core::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let verb = if self.skipped.len() == 1 { "was" } else { "were" };
        let (skipped, not_started) = (self.skipped.join(", "), self.not_started.join(", "));
        write!(f, "not started because {skipped} {verb} skipped: {not_started}")?;
        let more = self.count - self.not_started.len();
        if more > 0 {
            write!(f, " and {more} more")?;
        }
        write!(f, "; a retry that names {skipped} runs them")
    }
}

/// A bound resource that is not what was planned with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    pub uid: ResourceUid,
    pub resource_id: ResourceId,
    /// No such incarnation exists any more.
    pub gone: bool,
    /// What differs, as far as it can be told: names of parts (`labels`, `connection`, …).
    pub parts: Vec<String>,
}

/// One run of an operation. Key: `(operation, number)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRow {
    pub number: u32,
    pub plan_revision: u32,
    pub opened_at: DateTime<Utc>,
    /// Subject of the one who opened it: the requester, or who asked for the retry.
    pub opened_by: String,
    pub ended_at: Option<DateTime<Utc>>,
    pub end: Option<RunEnd>,
}

/// One node in one run. Key: `(operation, run, node)`. The state of a node is its row of the highest
/// run: a node that succeeded gets no row in later runs and keeps naming the revision it ran at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRunRow {
    pub run: u32,
    pub node: String,
    pub plan_revision: u32,
    pub state: NodeState,
    pub reason: Option<NodeReason>,
    /// What happened, for people; never a secret.
    pub message: Option<String>,
    /// Attempts made in this run.
    pub attempts: u32,
    /// The attempt that is live, or the one that settled the node.
    pub attempt: Option<AttemptId>,
    /// The update command that is live, or the one that settled the node.
    pub update: Option<CommandId>,
    /// What a waiting node waits for.
    pub wait: Option<NodeWait>,
    /// A destructive node was validated at the catalog just before its dispatch.
    pub revalidated: bool,
    pub started_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
    pub exit: Option<ExitSummary>,
    pub outputs: Option<Map<String, Value>>,
    pub artifacts: Vec<ArtifactRef>,
    pub evidence: Vec<EvidenceRef>,
}

/// What a waiting node waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "for")]
pub enum NodeWait {
    Gate {
        gate: GateId,
        expires_at: Option<DateTime<Utc>>,
    },
    /// The time of the next attempt.
    Retry { at: DateTime<Utc>, failure: Failure },
    /// An operator: retry, skip, resolve or cancel.
    Intervention { failure: Failure },
    /// The catalog's word on its targets, before something is destroyed.
    Validation { request: EffectId, failures: u32 },
    /// The catalog could not be asked; it is asked again at `at`.
    ValidationAgain { at: DateTime<Utc>, failures: u32 },
}

/// A failure that has not become the node's end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The end that the node has if nobody intervenes: failed, timed out or cancelled.
    pub state: NodeState,
    pub reason: NodeReason,
    pub message: String,
}

/// One attempt. Key: `id`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptRow {
    pub id: AttemptId,
    pub run: u32,
    pub node: String,
    /// From 1 within its node run.
    pub number: u32,
    pub plan_revision: u32,
    pub state: AttemptState,
    pub submitted_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    /// The name of the runner that it began on, when that was told before its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    pub ended_at: Option<DateTime<Utc>>,
    pub cancel_requested: bool,
    /// The first result told; it stands whatever comes later.
    pub result: Option<ExecutionResult>,
    /// The result came after the node had its end: kept as evidence, it changed nothing.
    pub late: bool,
}

/// One asking of a gate. Key: `id`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateRow {
    pub id: GateId,
    pub run: u32,
    pub node: String,
    pub plan_revision: u32,
    /// What a decision binds to: everything behind the gate.
    pub digest: Sha256Digest,
    pub state: GateState,
    pub role: String,
    /// Subjects that may not decide.
    pub excluded: Vec<String>,
    pub opened_at: DateTime<Utc>,
    pub expires_at: Option<DateTime<Utc>>,
    pub decided_at: Option<DateTime<Utc>>,
    pub decided_by: Option<String>,
    pub comment: Option<String>,
}

/// One resource update command. Key: `command_id`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateRow {
    pub command_id: CommandId,
    pub run: u32,
    pub node: String,
    pub uid: ResourceUid,
    pub resource_id: ResourceId,
    pub expected_version: i64,
    pub changes: Changes,
    pub evidence: Vec<EvidenceRef>,
    pub state: UpdateState,
    /// How often it was rebased before; bounds a race with a busy neighbour.
    pub rebases: u32,
    pub sent_at: DateTime<Utc>,
    pub settled_at: Option<DateTime<Utc>>,
    /// The resource's version after it, or the one it conflicted with.
    pub version: Option<i64>,
}

/// A bound resource as the catalog last confirmed it to this operation. Key: `(operation, uid, slot)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindingRow {
    pub uid: ResourceUid,
    pub slot: String,
    pub resource_id: ResourceId,
    pub resource_type: DottedName,
    /// The pin that the next validation must find: the plan's, or that after our own last update.
    pub pin: Sha256Digest,
    pub version: i64,
    /// The version that our own last update made, when the pin after it is not known.
    pub ours: Option<i64>,
    pub connection: Option<Map<String, Value>>,
}

/// The outcome of an intervention, kept for ever so that a repeat gets the first answer.
/// Key: `(operation, id)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRow {
    pub outcome: CommandOutcome,
    pub kind: String,
    pub actor: String,
    pub reason: Option<String>,
    pub at: DateTime<Utc>,
}

/// Everything of one operation. What a store loads, and what a decision's changes keep up to date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    pub operation: OperationRow,
    pub runs: Vec<RunRow>,
    /// Per node its row of the highest run; earlier ones are history and may be left out.
    pub node_runs: Vec<NodeRunRow>,
    /// Those of nodes that have not ended at least; more is harmless.
    pub attempts: Vec<AttemptRow>,
    pub gates: Vec<GateRow>,
    /// Those of nodes that have not ended at least; more is harmless.
    pub updates: Vec<UpdateRow>,
    pub bindings: Vec<BindingRow>,
    pub commands: Vec<CommandRow>,
}
