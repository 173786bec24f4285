//! How one node's end moves the others: dependents are met, skipped or made startable, lanes and the run
//! stop after failures, fan-outs end with their items.

use control_plane_plan::{NodeKind, OnFailure};

use super::Decider;
use crate::index::NodeIx;
use crate::row::{Failure, NodeRunRow, NodeWait};
use crate::state::is_bad;
use crate::{EventKind, GateState, NodeReason, NodeState};

/// Why what has not started is not started any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WindDown {
    Failed,
    Cancelled,
}

impl Decider<'_> {
    /// Edits a node's row and does everything that goes with it: counts, event, row mark, ending.
    pub(super) fn change(&mut self, ix: NodeIx, edit: impl FnOnce(&mut NodeRunRow)) {
        let from = self.state.cells[ix].row.state;
        debug_assert!(!from.is_end(), "what has ended never changes");
        self.state.count(ix, false);
        edit(&mut self.state.cells[ix].row);
        let row = &mut self.state.cells[ix].row;
        let to = row.state;
        if to.is_end() {
            row.ended_at = Some(self.now);
            row.wait = None;
        }
        self.state.count(ix, true);
        self.record.nodes.insert(ix);
        if from != to {
            let row = &self.state.cells[ix].row;
            let kind = EventKind::NodeChanged {
                run: row.run,
                node: row.node.clone(),
                from,
                to,
                reason: row.reason,
                message: row.message.clone(),
            };
            self.event(kind);
        }
        if to.is_end() {
            self.leave(ix, to);
        }
    }

    fn leave(&mut self, ix: NodeIx, end: NodeState) {
        self.state.prospects.ended(&self.state.plan, ix, end);
        self.state.arrived.remove(&ix);
        self.state.startable.remove(&ix);
        if let Some((lane, item)) = self.state.plan.edges(ix).lane {
            self.state.lanes[lane].end(item, ix, is_bad(end));
            self.state.lanes_due.insert(lane);
        }
        self.ended.push_back(ix);
    }

    pub(super) fn end(&mut self, ix: NodeIx, state: NodeState, reason: Option<NodeReason>, message: Option<String>) {
        self.change(ix, |row| {
            row.state = state;
            row.reason = reason;
            row.message = message;
        });
    }

    fn skip(&mut self, ix: NodeIx, reason: NodeReason) {
        self.end(ix, NodeState::Skipped, Some(reason), None);
    }

    pub(super) fn end_with(&mut self, ix: NodeIx, failure: Failure) {
        self.end(ix, failure.state, Some(failure.reason), Some(failure.message));
    }

    /// A node failed for good as far as attempts go: it is held for an operator or ends so.
    pub(super) fn fail(&mut self, ix: NodeIx, failure: Failure) {
        let hold = self.state.plan.node(ix).on_failure == OnFailure::Hold;
        if hold && !self.state.winding_down() {
            self.hold(ix, failure);
        } else {
            self.end_with(ix, failure);
        }
    }

    pub(super) fn hold(&mut self, ix: NodeIx, failure: Failure) {
        self.change(ix, |row| {
            row.state = NodeState::Waiting;
            row.reason = Some(failure.reason);
            row.message = Some(failure.message.clone());
            row.wait = Some(NodeWait::Intervention { failure });
        });
    }

    /// Lets everything follow that follows by itself.
    pub(super) fn follow(&mut self) {
        loop {
            if let Some(ix) = self.ended.pop_front() {
                self.told(ix);
            } else if let Some(ix) = self.next_arrived() {
                self.arrive(ix);
            } else if let Some(ix) = self.next_idle() {
                self.withdraw(ix);
            } else {
                break;
            }
        }
        self.conclude();
    }

    fn next_arrived(&mut self) -> Option<NodeIx> {
        let moving = self.state.operation.progress.begun || self.state.winding_down();
        if moving { self.state.arrived.pop_first() } else { None }
    }

    /// The next gate that has run out of prospects. At the end of a run all gates close anyway.
    fn next_idle(&mut self) -> Option<NodeIx> {
        let moving = self.state.operation.progress.begun && !self.state.winding_down();
        if moving {
            self.state.prospects.idle.pop_first()
        } else {
            None
        }
    }

    /// Tells the lane, the run and the dependents of `ix` that it has ended.
    fn told(&mut self, ix: NodeIx) {
        let cell = &self.state.cells[ix];
        let of_this_run = cell.row.run == self.state.operation.run;
        if of_this_run && is_bad(cell.row.state) && !cell.settled && !self.state.winding_down() {
            self.after_failure(ix);
        }
        if self.state.cells[ix].unmet > 0 || self.state.cells[ix].settled {
            return;
        }
        self.state.settle(ix);
        let plan = std::sync::Arc::clone(&self.state.plan);
        for (dependent, position) in &plan.edges(ix).dependents {
            if self.state.meet(*dependent, *position) {
                if self.state.cells[*dependent].row.state.is_end() {
                    self.ended.push_back(*dependent);
                } else {
                    self.state.arrived.insert(*dependent);
                }
            }
        }
    }

    /// What a failed node means for the rest. A lane tolerates as many failed items as it says; past
    /// that, or outside a lane, the node's own declaration holds.
    fn after_failure(&mut self, ix: NodeIx) {
        let node = self.state.plan.node(ix);
        let stops = match (&node.action, node.on_failure) {
            (NodeKind::Join, _) => return,
            (NodeKind::Gate(_), OnFailure::Hold) | (_, OnFailure::Fail) => true,
            (_, OnFailure::Continue | OnFailure::Hold) => false,
        };
        let past_tolerance = match self.state.plan.edges(ix).lane {
            Some((lane, _)) => self.state.lanes[lane].failed > self.state.plan.lanes()[lane].max_failures,
            None => true,
        };
        if !past_tolerance {
            return;
        }
        if stops {
            self.state.operation.progress.stopped_by = Some(node.id.clone());
            self.wind_down(WindDown::Failed);
        } else if let Some((lane, _)) = self.state.plan.edges(ix).lane {
            self.stop_lane(lane);
        }
    }

    fn stop_lane(&mut self, lane: usize) {
        let unopened: Vec<usize> = self.state.lanes[lane].unopened().collect();
        let plan = std::sync::Arc::clone(&self.state.plan);
        for item in unopened {
            for ix in &plan.lanes()[lane].items[item] {
                if !self.state.cells[*ix].row.state.is_end() {
                    self.skip(*ix, NodeReason::LaneStopped);
                }
            }
        }
    }

    /// Ends everything that neither runs nor has an unknown outcome. Fan-outs end by their items.
    pub(super) fn wind_down(&mut self, why: WindDown) {
        for ix in 0..self.state.cells.len() {
            let row = &self.state.cells[ix].row;
            let is_join = matches!(self.state.plan.node(ix).action, NodeKind::Join);
            if is_join || row.state.is_end() || row.state.is_live() || row.state == NodeState::Unresolved {
                continue;
            }
            match row.wait.clone() {
                Some(NodeWait::Retry { failure, .. } | NodeWait::Intervention { failure }) => {
                    self.end_with(ix, failure);
                }
                Some(NodeWait::Gate { gate, .. }) => {
                    self.close_gate(gate, GateState::Closed);
                    self.not_started(ix, why);
                }
                _ => self.not_started(ix, why),
            }
        }
    }

    fn not_started(&mut self, ix: NodeIx, why: WindDown) {
        match why {
            WindDown::Failed => self.skip(ix, NodeReason::NotStarted),
            WindDown::Cancelled => self.end(ix, NodeState::Cancelled, Some(NodeReason::OperationCancelled), None),
        }
    }

    /// All needs of `ix` have settled: decides whether it runs.
    fn arrive(&mut self, ix: NodeIx) {
        let plan = std::sync::Arc::clone(&self.state.plan);
        let node = plan.node(ix);
        let cell = &self.state.cells[ix];
        if matches!(node.action, NodeKind::Join) {
            return self.join(ix);
        }
        if cell.blocked {
            return self.skip(ix, NodeReason::NeedsNotMet);
        }
        if cell.closed {
            return self.skip(ix, NodeReason::GateClosed);
        }
        if node.skipped {
            return self.skip(ix, NodeReason::Condition);
        }
        if matches!(node.action, NodeKind::Gate(_)) && self.state.prospects.hopeless(ix) {
            return self.not_asked(ix);
        }
        if cell.unasked {
            // A gate is withdrawn when nothing behind it can start; should something come after all, it waits
            // for a decision that nobody took.
            return self.skip(ix, NodeReason::GateClosed);
        }
        match self.condition(ix, node.when.as_deref()) {
            Ok(true) => self.make_startable(ix),
            Ok(false) => self.skip(ix, NodeReason::Condition),
            Err(failure) => self.fail(ix, failure),
        }
    }

    fn make_startable(&mut self, ix: NodeIx) {
        match self.state.plan.edges(ix).lane {
            Some((lane, item)) => {
                self.state.lanes[lane].arrive(item, ix);
                self.state.lanes_due.insert(lane);
            }
            None => {
                self.state.startable.insert(ix);
            }
        }
        self.new_startable.push(ix);
    }

    /// Ends a fan-out as its items say. Kinds of ends are told apart; of several the worst one counts.
    fn join(&mut self, ix: NodeIx) {
        let plan = std::sync::Arc::clone(&self.state.plan);
        let edges = plan.edges(ix);
        let needed_apart = edges.needs.len() > edges.items.len();
        if edges.items.is_empty() {
            let cell = &self.state.cells[ix];
            let reason = match (cell.blocked || cell.closed || cell.unasked, needed_apart) {
                (true, true) => NodeReason::NeedsNotMet,
                _ => NodeReason::Condition,
            };
            return self.skip(ix, reason);
        }
        let (state, reason) = self.join_end(&edges.items);
        let message = (state != NodeState::Succeeded).then(|| self.tally(&edges.items));
        self.end(ix, state, reason, message);
    }

    fn join_end(&self, items: &[NodeIx]) -> (NodeState, Option<NodeReason>) {
        let cells = || items.iter().map(|item| &self.state.cells[*item]);
        let any = |state: NodeState| cells().any(|cell| cell.row.state == state);
        let failed = |cell: &&crate::state::Cell| cell.row.state == NodeState::Failed;
        let is_lost = |cell: &crate::state::Cell| cell.row.reason == Some(NodeReason::LostRunner);
        if cells().filter(failed).any(|cell| !is_lost(cell)) {
            return (NodeState::Failed, Some(NodeReason::Items));
        }
        if any(NodeState::Failed) {
            return (NodeState::Failed, Some(NodeReason::LostRunner));
        }
        if any(NodeState::TimedOut) {
            return (NodeState::TimedOut, Some(NodeReason::Items));
        }
        if any(NodeState::Cancelled) {
            return (NodeState::Cancelled, Some(NodeReason::Items));
        }
        let skipped = |cell: &crate::state::Cell| cell.row.state == NodeState::Skipped;
        if cells().all(skipped) {
            let worst = cells().find(|cell| !cell.benign).or_else(|| cells().next());
            return (NodeState::Skipped, worst.and_then(|cell| cell.row.reason));
        }
        if cells().all(|cell| !skipped(cell) || cell.benign) {
            return (NodeState::Succeeded, None);
        }
        (NodeState::Failed, Some(NodeReason::Items))
    }

    fn tally(&self, items: &[NodeIx]) -> String {
        let count = |wanted: fn(NodeState) -> bool| {
            let states = items.iter().map(|item| self.state.cells[*item].row.state);
            states.filter(|state| wanted(*state)).count()
        };
        let succeeded = count(|state| state == NodeState::Succeeded);
        let skipped = count(|state| state == NodeState::Skipped);
        let bad = count(is_bad);
        format!(
            "of {} items {succeeded} succeeded, {bad} failed, {skipped} not run",
            items.len()
        )
    }
}
