//! The state of one operation, as deciding needs it: its rows, and what can be derived from them (how
//! many needs of a node are still open, which lanes have room, which times are awaited), kept up to date
//! step by step, so that a decision costs what it changes and not what the plan holds.
//!
//! Invariant: a state restored from its rows decides as the state itself would; nothing that matters lives
//! in memory only.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use control_plane_plan::{Gate, GateClaims, NodeKind};
use kernel::Sha256Digest;
use kernel::id::{AttemptId, CommandId, OperationId, OrganizationId, ResourceUid};

use crate::index::NodeIx;
use crate::lane::LaneState;
use crate::row::{
    AttemptRow, BindingRow, ClaimsState, CommandRow, GateRow, NodeRunRow, NodeWait, OperationRow, Progress, Rows,
    RunRow, UpdateRow, ValidationState,
};
use crate::{AttemptState, GateId, GateState, InterventionId, NodeReason, NodeState, OperationStatus, PlanIndex};
use crate::{UpdateState, accept_of};

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
    /// It has ended and so have all its needs: dependents have been told.
    pub(crate) settled: bool,
    /// Skipped without anything having gone wrong.
    pub(crate) benign: bool,
}

/// How many nodes stand how. Decides the operation's status without looking at nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Not ended (unresolved ones are counted apart, too).
    pub(crate) open: usize,
    pub(crate) live: usize,
    pub(crate) unresolved: usize,
    pub(crate) held: usize,
    pub(crate) gates_holding: usize,
    pub(crate) gates_releasing: usize,
    /// Waiting for a time or for the catalog.
    pub(crate) soon: usize,
    /// Ended in failure, timeout or cancellation.
    pub(crate) bad: usize,
}

/// One operation. Built by [`OperationState::create`] or [`OperationState::restore`], moved on by
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

    /// Rebuilds all that is derived: at load, and when a run opens.
    pub(crate) fn derive(&mut self) {
        self.counts = Counts::default();
        self.arrived.clear();
        self.startable.clear();
        self.lanes_due.clear();
        self.timers.clear();
        for ix in 0..self.cells.len() {
            self.count(ix, true);
            self.derive_cell(ix);
        }
        self.lanes = LaneState::derive(&self.plan, &self.cells, self.operation.run);
    }

    /// Needs come first in plan order, so one pass suffices.
    fn derive_cell(&mut self, ix: NodeIx) {
        let plan = Arc::clone(&self.plan);
        let cell = &mut self.cells[ix];
        *cell = Cell::new(cell.row.clone());
        cell.unmet = plan.edges(ix).needs.len();
        for position in 0..plan.edges(ix).needs.len() {
            let need = plan.edges(ix).needs[position].node;
            if self.cells[need].settled {
                self.meet(ix, position);
            }
        }
        let cell = &self.cells[ix];
        if cell.unmet == 0 {
            if cell.row.state.is_end() {
                self.settle(ix);
            } else if matches!(cell.row.state, NodeState::Pending | NodeState::Ready) {
                self.arrived.insert(ix);
            }
        }
    }

    /// Marks an ended node whose needs have settled as settled.
    pub(crate) fn settle(&mut self, ix: NodeIx) {
        let benign = match (self.cells[ix].row.state, self.cells[ix].row.reason) {
            (NodeState::Skipped, Some(NodeReason::Condition | NodeReason::Operator)) => true,
            (NodeState::Skipped, Some(NodeReason::NeedsNotMet)) => self.skipped_by_benign(ix),
            _ => false,
        };
        let cell = &mut self.cells[ix];
        cell.benign = benign;
        cell.settled = true;
    }

    fn skipped_by_benign(&self, ix: NodeIx) -> bool {
        self.plan.edges(ix).needs.iter().all(|need| {
            let cell = &self.cells[need.node];
            let accepted = accept_of(cell.row.state, cell.row.reason).is_some_and(|end| need.accept.contains(end));
            accepted || cell.benign
        })
    }

    /// Tells `ix` that its need at `position` has settled. True when that was the last one.
    pub(crate) fn meet(&mut self, ix: NodeIx, position: usize) -> bool {
        let need = self.plan.edges(ix).needs[position];
        let needed = &self.cells[need.node];
        let end = accept_of(needed.row.state, needed.row.reason);
        let accepted = end.is_some_and(|end| need.accept.contains(end));
        let is_gate = matches!(self.plan.node(need.node).action, NodeKind::Gate(_));
        let handles_rejection = need.accept.contains(control_plane_plan::Accept::Failed);
        let gate_closed = is_gate && !handles_rejection && !self.gate_open(need.node);
        let closed = needed.closed || gate_closed;
        let cell = &mut self.cells[ix];
        cell.blocked |= !accepted;
        cell.closed |= closed;
        cell.unmet -= 1;
        cell.unmet == 0
    }

    /// A gate lets through once it has passed for what it covers now, or when its own condition said
    /// that it is not needed.
    fn gate_open(&self, ix: NodeIx) -> bool {
        let row = &self.cells[ix].row;
        match row.state {
            NodeState::Succeeded => self.passed(&row.node, self.plan.edges(ix).digest),
            NodeState::Skipped => row.reason == Some(NodeReason::Condition),
            _ => false,
        }
    }

    /// Adds a node's row to, or takes it from, the counts and timers.
    pub(crate) fn count(&mut self, ix: NodeIx, add: bool) {
        let row = &self.cells[ix].row;
        let mut delta = Counts {
            open: usize::from(!row.state.is_end()),
            live: usize::from(row.state.is_live()),
            unresolved: usize::from(row.state == NodeState::Unresolved),
            bad: usize::from(is_bad(row.state)),
            ..Counts::default()
        };
        let mut timer = None;
        match &row.wait {
            Some(NodeWait::Gate { expires_at, .. }) => {
                let releases = self
                    .gate_action(ix)
                    .is_some_and(|gate| gate.claims == GateClaims::Release);
                delta.gates_releasing = usize::from(releases);
                delta.gates_holding = usize::from(!releases);
                timer = *expires_at;
            }
            Some(NodeWait::Intervention { .. }) => delta.held = 1,
            Some(NodeWait::Validation { .. }) => delta.soon = 1,
            Some(NodeWait::Retry { at, .. } | NodeWait::ValidationAgain { at, .. }) => {
                delta.soon = 1;
                timer = Some(*at);
            }
            None => {}
        }
        self.counts.shift(delta, add);
        if let Some(at) = timer {
            if add {
                self.timers.insert((at, ix));
            } else {
                self.timers.remove(&(at, ix));
            }
        }
    }
}

/// Whether a node ended, and not well.
pub(crate) const fn is_bad(state: NodeState) -> bool {
    matches!(state, NodeState::Failed | NodeState::TimedOut | NodeState::Cancelled)
}

impl Counts {
    fn shift(&mut self, by: Self, add: bool) {
        let shift = |value: &mut usize, by: usize| *value = if add { *value + by } else { *value - by };
        shift(&mut self.open, by.open);
        shift(&mut self.live, by.live);
        shift(&mut self.unresolved, by.unresolved);
        shift(&mut self.held, by.held);
        shift(&mut self.gates_holding, by.gates_holding);
        shift(&mut self.gates_releasing, by.gates_releasing);
        shift(&mut self.soon, by.soon);
        shift(&mut self.bad, by.bad);
    }
}

impl Cell {
    pub(crate) const fn new(row: NodeRunRow) -> Self {
        Self {
            row,
            unmet: 0,
            blocked: false,
            closed: false,
            settled: false,
            benign: false,
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
