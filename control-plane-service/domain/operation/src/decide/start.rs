//! Starting what may start, once all inputs are taken. The only place from which nodes start, so the only
//! place where claims, pauses, gates and lanes have to be looked at. (A rebased update is sent again where
//! its conflict is told: it runs already, and a pause lets what runs come to its end.)

use control_plane_plan::NodeKind;

use super::Decider;
use crate::NodeState;
use crate::index::NodeIx;
use crate::row::ClaimsState;

impl Decider<'_> {
    pub(super) fn start_what_may(&mut self) {
        self.take_claims_back();
        while self.state.may_start() {
            let Some(ix) = self.next_startable() else { break };
            self.start(ix);
            self.follow();
        }
        self.mark_ready();
        self.let_go_at_gates();
        self.refresh_status();
    }

    fn next_startable(&mut self) -> Option<NodeIx> {
        if let Some(ix) = self.state.startable.pop_first() {
            return Some(ix);
        }
        while let Some(lane_ix) = self.state.lanes_due.first().copied() {
            let max_parallel = self.state.plan.lanes()[lane_ix].max_parallel;
            let lane = &mut self.state.lanes[lane_ix];
            if let Some(ix) = lane.startable.pop_first() {
                return Some(ix);
            }
            if !lane.open_next(max_parallel) {
                self.state.lanes_due.remove(&lane_ix);
            }
        }
        None
    }

    fn start(&mut self, ix: NodeIx) {
        let plan = std::sync::Arc::clone(&self.state.plan);
        self.state.cells[ix].row.started_at.get_or_insert(self.now);
        self.record.nodes.insert(ix);
        match &plan.node(ix).action {
            NodeKind::Job(job) => self.start_job(ix, job),
            NodeKind::Gate(gate) => self.open_gate(ix, gate),
            NodeKind::ResourceUpdate(update) => self.start_update(ix, update),
            // A fan-out ends by its items and never becomes startable.
            NodeKind::Join => {}
        }
    }

    /// Shows nodes that could start but for a pause or missing claims as ready.
    fn mark_ready(&mut self) {
        for ix in core::mem::take(&mut self.new_startable) {
            let waits = self.state.startable.contains(&ix)
                || self
                    .state
                    .plan
                    .edges(ix)
                    .lane
                    .is_some_and(|(lane, _)| self.state.lanes[lane].startable.contains(&ix));
            if waits && self.state.cells[ix].row.state == NodeState::Pending {
                self.change(ix, |row| row.state = NodeState::Ready);
            }
        }
    }

    /// Whether anything could start if only it might.
    pub(super) fn has_startable(&self) -> bool {
        let lane_may = |lane: &usize| {
            let max_parallel = self.state.plan.lanes()[*lane].max_parallel;
            self.state.lanes[*lane].may_go_on(max_parallel)
        };
        !self.state.startable.is_empty() || self.state.lanes_due.iter().any(lane_may)
    }

    /// Claims that were let go while a gate waited are wanted again as soon as something may start.
    fn take_claims_back(&mut self) {
        let progress = &self.state.operation.progress;
        let released = matches!(progress.claims, ClaimsState::Released { .. });
        if released && !progress.paused && !self.state.winding_down() && self.has_startable() {
            self.want_claims();
        }
    }

    /// Lets claims go when only gates that say so are waited for.
    fn let_go_at_gates(&mut self) {
        let counts = self.state.counts;
        let only_gates = counts.gates_releasing > 0
            && counts.gates_holding + counts.live + counts.unresolved + counts.held + counts.soon == 0;
        if only_gates && self.state.may_start() && !self.has_startable() {
            self.release_claims_at_gate();
        }
    }
}
