//! The state of one operation, as deciding needs it: its rows, and what can be derived from them (how
//! many needs of a node are still open, which lanes have room, which times are awaited), kept up to date
//! step by step, so that a decision costs what it changes and not what the plan holds.
//!
//! Invariant: a state restored from its rows decides as the state itself would; nothing that matters lives
//! in memory only.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use control_plane_plan::{Gate, NodeKind};
use kernel::Sha256Digest;
use kernel::id::{AttemptId, CommandId, OperationId, OrganizationId, ResourceUid};

use crate::UpdateState;
use crate::derived::Counts;
use crate::index::NodeIx;
use crate::lane::LaneState;
use crate::prospects::Prospects;
use crate::row::{
    AttemptRow, BindingRow, ClaimsState, CommandRow, GateRow, NodeRunRow, OperationRow, Progress, Rows, RunRow,
    UpdateRow, ValidationState,
};
use crate::{AttemptState, GateId, GateState, InterventionId, NodeState, OperationStatus, PlanIndex};

/// One node: its row and what is derived for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    pub(crate) row: NodeRunRow,
    /// Needs that have not settled.
    pub(crate) unmet: usize,
    /// A need ended in a way that this node does not accept.
    pub(crate) blocked: bool,
    /// It is behind a gate that did not pass.
    pub(crate) closed: bool,
    /// It is behind a gate that was withdrawn, because nothing behind it could start.
    pub(crate) unasked: bool,
    /// It has ended and so have all its needs: dependents have been told.
    pub(crate) settled: bool,
    /// Skipped without anything having gone wrong.
    pub(crate) benign: bool,
    /// It did not run because an operator skipped it, or something whose success it needs.
    pub(crate) forgone: bool,
}

/// One operation. Built by [`crate::create`] or [`OperationState::restore`], moved on by
/// [`crate::decide`].
#[derive(Debug, Clone, PartialEq)]
pub struct OperationState {
    pub(crate) operation: OperationRow,
    pub(crate) plan: Arc<PlanIndex>,
    pub(crate) runs: Vec<RunRow>,
    pub(crate) cells: Vec<Cell>,
    /// Rows of nodes that the current plan revision does not have.
    pub(crate) dropped: Vec<NodeRunRow>,
    /// Those that have not ended.
    pub(crate) attempts: BTreeMap<AttemptId, AttemptRow>,
    pub(crate) gates: BTreeMap<GateId, GateRow>,
    /// Those that have not been answered.
    pub(crate) updates: BTreeMap<CommandId, UpdateRow>,
    pub(crate) bindings: BTreeMap<(ResourceUid, String), BindingRow>,
    pub(crate) commands: BTreeMap<InterventionId, CommandRow>,
    pub(crate) counts: Counts,
    pub(crate) lanes: Vec<LaneState>,
    /// Nodes whose needs have settled and that nobody looked at yet.
    pub(crate) arrived: BTreeSet<NodeIx>,
    /// Nodes outside lanes that may start as soon as the operation may start anything.
    pub(crate) startable: BTreeSet<NodeIx>,
    /// Lanes in which something may have become startable.
    pub(crate) lanes_due: BTreeSet<usize>,
    pub(crate) timers: BTreeSet<(DateTime<Utc>, NodeIx)>,
    pub(crate) prospects: Prospects,
}

/// What a new operation is made from.
#[derive(Debug, Clone)]
pub struct NewOperation {
    pub id: OperationId,
    pub organization_id: OrganizationId,
    pub requester: String,
    /// Revision 1 of its plan.
    pub plan: Arc<PlanIndex>,
    /// Queue behind other operations' claims instead of failing at once.
    pub wait_for_claims: bool,
}

/// The rows do not belong together.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("the operation is at plan revision {wanted}, the plan given is revision {given}")]
    PlanRevision { wanted: u32, given: u32 },
    #[error("the operation is in run {0}, which has no row")]
    RunMissing(u32),
    #[error("node {0:?} has no row")]
    NodeMissing(String),
}

impl OperationState {
    /// The operation's own row.
    #[must_use]
    pub const fn operation(&self) -> &OperationRow {
        &self.operation
    }

    /// The plan revision in force.
    #[must_use]
    pub const fn plan(&self) -> &Arc<PlanIndex> {
        &self.plan
    }

    /// The row of a node of the plan in force.
    #[must_use]
    pub fn node_run(&self, node: &str) -> Option<&NodeRunRow> {
        self.plan.position(node).map(|ix| &self.cells[ix].row)
    }

    /// Rows of all nodes of the plan in force, in plan order.
    pub fn node_runs(&self) -> impl Iterator<Item = &NodeRunRow> {
        self.cells.iter().map(|cell| &cell.row)
    }

    /// Every asking of a gate so far.
    pub fn gates(&self) -> impl Iterator<Item = &GateRow> {
        self.gates.values()
    }

    /// Attempts that have not ended.
    pub fn attempts(&self) -> impl Iterator<Item = &AttemptRow> {
        self.attempts.values()
    }

    /// Resource updates that have not been answered.
    pub fn updates(&self) -> impl Iterator<Item = &UpdateRow> {
        self.updates.values()
    }

    /// When it wants to be asked again although nothing comes in.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<DateTime<Utc>> {
        if self.operation.status.is_end() {
            return None;
        }
        let progress = &self.operation.progress;
        let force = progress
            .cancel
            .as_ref()
            .filter(|cancel| !cancel.forced && self.counts.live > 0);
        let again = match progress.validation {
            ValidationState::Again { at, .. } => Some(at),
            _ => None,
        };
        let node = self.timers.first().map(|(at, _)| *at);
        [force.map(|cancel| cancel.force_at), again, node]
            .into_iter()
            .flatten()
            .min()
    }

    /// All rows: what a store would load. Attempts and updates that have been answered are not kept.
    #[must_use]
    pub fn rows(&self) -> Rows {
        Rows {
            operation: self.operation.clone(),
            runs: self.runs.clone(),
            node_runs: self
                .cells
                .iter()
                .map(|cell| &cell.row)
                .chain(&self.dropped)
                .cloned()
                .collect(),
            attempts: self.attempts.values().cloned().collect(),
            gates: self.gates.values().cloned().collect(),
            updates: self.updates.values().cloned().collect(),
            bindings: self.bindings.values().cloned().collect(),
            commands: self.commands.values().cloned().collect(),
        }
    }

    /// The state that these rows and this plan revision describe.
    ///
    /// # Errors
    /// When the rows do not belong together.
    pub fn restore(rows: Rows, plan: Arc<PlanIndex>) -> Result<Self, RestoreError> {
        if rows.operation.plan_revision != plan.revision() {
            return Err(RestoreError::PlanRevision {
                wanted: rows.operation.plan_revision,
                given: plan.revision(),
            });
        }
        let mut runs = rows.runs;
        runs.sort_by_key(|run| run.number);
        if runs.last().map(|run| run.number) != Some(rows.operation.run) {
            return Err(RestoreError::RunMissing(rows.operation.run));
        }
        let (cells, dropped) = cells(rows.node_runs, &plan)?;
        let mut state = Self {
            operation: rows.operation,
            runs,
            cells,
            dropped,
            attempts: rows
                .attempts
                .into_iter()
                .filter(|attempt| !matches!(attempt.state, AttemptState::Ended | AttemptState::Refused))
                .map(|attempt| (attempt.id, attempt))
                .collect(),
            gates: rows.gates.into_iter().map(|gate| (gate.id, gate)).collect(),
            updates: rows
                .updates
                .into_iter()
                .filter(|update| update.state == UpdateState::Sent)
                .map(|update| (update.command_id, update))
                .collect(),
            bindings: rows
                .bindings
                .into_iter()
                .map(|binding| ((binding.uid, binding.slot.clone()), binding))
                .collect(),
            commands: rows
                .commands
                .into_iter()
                .map(|command| (command.outcome.id, command))
                .collect(),
            counts: Counts::default(),
            lanes: Vec::new(),
            arrived: BTreeSet::new(),
            startable: BTreeSet::new(),
            lanes_due: BTreeSet::new(),
            timers: BTreeSet::new(),
            prospects: Prospects::default(),
            plan,
        };
        state.derive();
        Ok(state)
    }

    /// A state before its first decision: no claims, nothing begun.
    pub(crate) fn fresh(new: NewOperation, now: DateTime<Utc>) -> Self {
        let operation = OperationRow {
            id: new.id,
            organization_id: new.organization_id,
            requester: new.requester,
            created_at: now,
            status: OperationStatus::Pending,
            run: 1,
            plan_revision: new.plan.revision(),
            revision: 0,
            last_event: 0,
            last_event_at: now,
            progress: Progress {
                wait_for_claims: new.wait_for_claims,
                ..Progress::default()
            },
        };
        let run = RunRow {
            number: 1,
            plan_revision: new.plan.revision(),
            opened_at: now,
            opened_by: operation.requester.clone(),
            ended_at: None,
            end: None,
        };
        let cells = (0..new.plan.len())
            .map(|ix| Cell::new(pending(&new.plan, ix, 1)))
            .collect();
        let mut state = Self {
            operation,
            runs: vec![run],
            cells,
            dropped: Vec::new(),
            attempts: BTreeMap::new(),
            gates: BTreeMap::new(),
            updates: BTreeMap::new(),
            bindings: BTreeMap::new(),
            commands: BTreeMap::new(),
            counts: Counts::default(),
            lanes: Vec::new(),
            arrived: BTreeSet::new(),
            startable: BTreeSet::new(),
            lanes_due: BTreeSet::new(),
            timers: BTreeSet::new(),
            prospects: Prospects::default(),
            plan: new.plan,
        };
        state.derive();
        state
    }

    /// The current run.
    pub(crate) fn run(&self) -> &RunRow {
        self.runs.last().expect("an operation has a run from its creation on")
    }

    pub(crate) fn run_mut(&mut self) -> &mut RunRow {
        self.runs
            .last_mut()
            .expect("an operation has a run from its creation on")
    }

    pub(crate) fn gate_action(&self, ix: NodeIx) -> Option<&Gate> {
        match &self.plan.node(ix).action {
            NodeKind::Gate(gate) => Some(gate),
            _ => None,
        }
    }

    /// Whether the gate node has passed for what it covers in the plan in force.
    pub(crate) fn passed(&self, node: &str, digest: Option<Sha256Digest>) -> bool {
        self.gates
            .values()
            .any(|gate| gate.node == node && gate.state == GateState::Passed && Some(gate.digest) == digest)
    }

    /// What the catalog last confirmed of a bound resource.
    pub(crate) fn binding(&self, uid: ResourceUid) -> Option<&BindingRow> {
        let rows = self.bindings.range((uid, String::new())..);
        rows.map(|(_, row)| row)
            .take_while(|row| row.uid == uid)
            .max_by_key(|row| row.version)
    }

    /// Whether something that needs claims may start.
    pub(crate) fn may_start(&self) -> bool {
        let progress = &self.operation.progress;
        !self.operation.status.is_end()
            && progress.begun
            && !progress.paused
            && !self.winding_down()
            && matches!(progress.claims, ClaimsState::Held { .. })
            && matches!(progress.validation, ValidationState::Valid { .. })
    }

    /// Whether the run only waits for what still runs.
    pub(crate) fn winding_down(&self) -> bool {
        let progress = &self.operation.progress;
        progress.cancel.is_some() || progress.stopped_by.is_some() || progress.failure.is_some()
    }
}

/// Whether a node ended, and not well.
pub(crate) const fn is_bad(state: NodeState) -> bool {
    matches!(state, NodeState::Failed | NodeState::TimedOut | NodeState::Cancelled)
}

impl Cell {
    pub(crate) const fn new(row: NodeRunRow) -> Self {
        Self {
            row,
            unmet: 0,
            blocked: false,
            closed: false,
            unasked: false,
            settled: false,
            benign: false,
            forgone: false,
        }
    }
}

/// The row of a node before anything happened to it in `run`.
pub(crate) fn pending(plan: &PlanIndex, ix: NodeIx, run: u32) -> NodeRunRow {
    NodeRunRow {
        run,
        node: plan.node(ix).id.clone(),
        plan_revision: plan.revision(),
        state: NodeState::Pending,
        reason: None,
        message: None,
        attempts: 0,
        attempt: None,
        update: None,
        wait: None,
        revalidated: false,
        started_at: None,
        ended_at: None,
        exit: None,
        outputs: None,
        artifacts: Vec::new(),
        evidence: Vec::new(),
    }
}

type Split = (Vec<Cell>, Vec<NodeRunRow>);

/// The row of the highest run for every node of the plan, and those of nodes it no longer has.
fn cells(rows: Vec<NodeRunRow>, plan: &PlanIndex) -> Result<Split, RestoreError> {
    let mut latest: HashMap<String, NodeRunRow> = HashMap::with_capacity(rows.len());
    for row in rows {
        if latest.get(&row.node).is_none_or(|known| known.run < row.run) {
            latest.insert(row.node.clone(), row);
        }
    }
    let mut cells = Vec::with_capacity(plan.len());
    for ix in 0..plan.len() {
        let id = &plan.node(ix).id;
        let row = latest.remove(id).ok_or_else(|| RestoreError::NodeMissing(id.clone()))?;
        cells.push(Cell::new(row));
    }
    let mut dropped: Vec<NodeRunRow> = latest.into_values().collect();
    dropped.sort_by(|a, b| a.node.cmp(&b.node));
    Ok((cells, dropped))
}
