//! What is derived from an operation's rows, and how it is kept up to date step by step: which needs are
//! still open, which nodes are behind a closed gate, how many nodes stand how, which times are awaited.

use std::sync::Arc;

use control_plane_plan::{Accept, GateClaims, NodeKind};

use crate::index::{IndexedNeed, NodeIx};
use crate::lane::LaneState;
use crate::prospects::Prospects;
use crate::row::NodeWait;
use crate::state::{Cell, OperationState, is_bad};
use crate::{NodeReason, NodeState, accept_of};

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
    /// Settled ones that would have run but for an operator's skip of something else.
    pub(crate) left_out: usize,
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

impl OperationState {
    /// Rebuilds all that is derived: at load, and when a run opens.
    pub(crate) fn derive(&mut self) {
        self.counts = Counts::default();
        self.arrived.clear();
        self.startable.clear();
        self.lanes_due.clear();
        self.timers.clear();
        self.prospects = Prospects::default();
        for ix in 0..self.cells.len() {
            self.count(ix, true);
            self.derive_cell(ix);
        }
        self.lanes = LaneState::derive(&self.plan, &self.cells, self.operation.run);
        self.prospects = Prospects::derive(&self.plan, &self.cells);
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
        let forgone = self.is_forgone(ix);
        let benign = match (self.cells[ix].row.state, self.cells[ix].row.reason) {
            (NodeState::Skipped, Some(NodeReason::Condition | NodeReason::Operator | NodeReason::NothingBehind)) => {
                true
            }
            (NodeState::Skipped, Some(NodeReason::NeedsNotMet)) => !forgone && self.skipped_by_harmless(ix),
            _ => false,
        };
        let cell = &mut self.cells[ix];
        cell.benign = benign;
        cell.forgone = forgone;
        cell.settled = true;
        self.counts.left_out += usize::from(self.is_left_out(ix));
    }

    /// Whether it would have run but for an operator's skip of something else. A fan-out is only a tally.
    pub(crate) fn is_left_out(&self, ix: NodeIx) -> bool {
        let cell = &self.cells[ix];
        let is_join = matches!(self.plan.node(ix).action, NodeKind::Join);
        cell.forgone && !is_join && cell.row.reason != Some(NodeReason::Operator)
    }

    /// Whether an operator skipped it, and something did not start for want of it.
    pub(crate) fn skipped_what_others_need(&self, ix: NodeIx) -> bool {
        let row = &self.cells[ix].row;
        let by_operator = row.state == NodeState::Skipped && row.reason == Some(NodeReason::Operator);
        let mut dependents = self.plan.edges(ix).dependents.iter();
        let is_join = matches!(self.plan.node(ix).action, NodeKind::Join);
        by_operator && !is_join && dependents.any(|(dependent, _)| self.cells[*dependent].forgone)
    }

    /// Who skips a node answers for that node; not for those that need its success, for which it only is
    /// missing. Those that handle its failure, or accept that it was skipped, lack nothing.
    fn is_forgone(&self, ix: NodeIx) -> bool {
        let row = &self.cells[ix].row;
        let edges = self.plan.edges(ix);
        if row.state != NodeState::Skipped {
            return false;
        }
        if matches!(self.plan.node(ix).action, NodeKind::Join) {
            return edges.items.iter().any(|item| self.cells[*item].forgone);
        }
        match row.reason {
            Some(NodeReason::Operator) => true,
            Some(NodeReason::NeedsNotMet | NodeReason::GateClosed) if !self.plan.node(ix).skipped => {
                let missing = |need: &IndexedNeed| !self.is_accepted(need);
                let success = |need: &IndexedNeed| need.accept.contains(Accept::Succeeded);
                let forgone = |need: &IndexedNeed| self.cells[need.node].forgone;
                let stops = |need: &&IndexedNeed| missing(need) || (forgone(need) && self.closes(need.node));
                // A withdrawn gate stood in nobody's way: what it covers had other reasons.
                let asked = |need: &&IndexedNeed| !self.is_withdrawn(need.node);
                let mut stopping = edges.needs.iter().filter(asked).filter(stops).peekable();
                stopping.peek().is_some() && stopping.all(|need| forgone(need) && success(need))
            }
            _ => false,
        }
    }

    /// Whether what is behind `ix` stays shut.
    fn closes(&self, ix: NodeIx) -> bool {
        self.cells[ix].closed || matches!(self.plan.node(ix).action, NodeKind::Gate(_))
    }

    fn is_accepted(&self, need: &IndexedNeed) -> bool {
        let row = &self.cells[need.node].row;
        accept_of(row.state, row.reason).is_some_and(|end| need.accept.contains(end))
    }

    fn skipped_by_harmless(&self, ix: NodeIx) -> bool {
        self.plan.edges(ix).needs.iter().all(|need| {
            let cell = &self.cells[need.node];
            self.is_accepted(need) || cell.benign || cell.forgone
        })
    }

    /// Tells `ix` that its need at `position` has settled. True when that was the last one.
    pub(crate) fn meet(&mut self, ix: NodeIx, position: usize) -> bool {
        let need = self.plan.edges(ix).needs[position];
        let needed = &self.cells[need.node];
        let end = accept_of(needed.row.state, needed.row.reason);
        let accepted = end.is_some_and(|end| need.accept.contains(end));
        let is_gate = matches!(self.plan.node(need.node).action, NodeKind::Gate(_));
        let handles_rejection = need.accept.contains(Accept::Failed);
        let gate_closed = is_gate && !handles_rejection && !self.gate_open(need.node);
        let withdrawn = gate_closed && self.is_withdrawn(need.node);
        let unasked = needed.unasked || withdrawn;
        let closed = needed.closed || (gate_closed && !withdrawn);
        let cell = &mut self.cells[ix];
        cell.blocked |= !accepted && !closed && !withdrawn;
        cell.closed |= closed;
        cell.unasked |= unasked;
        cell.unmet -= 1;
        self.prospects.needs_met(&self.plan, ix, &self.cells[ix]);
        self.cells[ix].unmet == 0
    }

    /// Whether a gate was not asked, because nothing behind it could start.
    fn is_withdrawn(&self, ix: NodeIx) -> bool {
        let row = &self.cells[ix].row;
        row.state == NodeState::Skipped && row.reason == Some(NodeReason::NothingBehind)
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
