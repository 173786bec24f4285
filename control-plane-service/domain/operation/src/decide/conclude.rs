//! Where the operation stands as a whole, and the end of its run. Claims are let go in the very decision
//! that ends the run, and never while something may still run.

use super::Decider;
use crate::row::{ClaimsState, LeftOut, RunFailure, ValidationState};
use crate::{EffectKind, EventKind, OperationStatus, RunEnd};

impl Decider<'_> {
    /// Ends the run when nothing of it is left, and brings the status up to date.
    pub(super) fn conclude(&mut self) {
        let progress = &self.state.operation.progress;
        let over = progress.begun || self.state.winding_down();
        if over && self.state.counts.open == 0 && !self.state.operation.status.is_end() {
            self.end_run();
        }
        self.refresh_status();
    }

    fn end_run(&mut self) {
        self.tell_left_out();
        let end = self.outcome();
        let detail = self.why(end);
        let now = self.now;
        let run = self.state.run_mut();
        run.ended_at = Some(now);
        run.end = Some(end);
        let number = run.number;
        self.record.runs.insert(number);
        self.drop_claims();
        self.state.operation.progress.validation = ValidationState::Needed;
        self.event(EventKind::RunEnded {
            run: number,
            end,
            detail,
        });
        if self.state.plan.bindings().next().is_some() {
            self.effect(EffectKind::ReleaseFinalizers);
        }
    }

    /// Green means that all that was asked for was done, or was not needed: who skips a node answers for it,
    /// not for those that needed its success and never started.
    fn tell_left_out(&mut self) {
        if self.state.counts.left_out == 0 || self.state.winding_down() {
            return;
        }
        let nodes = 0..self.state.cells.len();
        let name = |ix: usize| self.state.plan.node(ix).id.clone();
        let skipped = |ix: &usize| self.state.skipped_what_others_need(*ix);
        let left_out = |ix: &usize| self.state.is_left_out(*ix);
        let left_out = LeftOut {
            skipped: nodes.clone().filter(skipped).take(LeftOut::NAMED).map(name).collect(),
            not_started: nodes.filter(left_out).take(LeftOut::NAMED).map(name).collect(),
            count: self.state.counts.left_out,
        };
        self.state.operation.progress.failure = Some(RunFailure::LeftOut(left_out));
    }

    fn outcome(&self) -> RunEnd {
        let progress = &self.state.operation.progress;
        if progress.cancel.is_some() {
            RunEnd::Cancelled
        } else if progress.failure.is_some() || self.state.counts.bad > 0 {
            RunEnd::Failed
        } else {
            RunEnd::Succeeded
        }
    }

    fn why(&self, end: RunEnd) -> Option<String> {
        let progress = &self.state.operation.progress;
        match (end, &progress.failure, &progress.stopped_by) {
            (RunEnd::Failed, Some(RunFailure::ClaimsRefused { .. }), _) => {
                Some("another operation holds, or is ahead in the queue for, what this one needs".to_owned())
            }
            (RunEnd::Failed, Some(RunFailure::BindingsMoved { moved }), _) => {
                let names: Vec<String> = moved.iter().map(|moved| moved.resource_id.to_string()).collect();
                Some(format!("not what was planned with any more: {}", names.join(", ")))
            }
            (RunEnd::Failed, Some(RunFailure::LeftOut(left_out)), _) => Some(left_out.to_string()),
            (RunEnd::Failed, None, Some(node)) => Some(format!("{node} failed")),
            (RunEnd::Failed, None, None) => Some(match self.state.counts.bad {
                1 => "failed, handled: one node failed".to_owned(),
                bad => format!("failed, handled: {bad} nodes failed"),
            }),
            (RunEnd::Cancelled, ..) => progress
                .cancel
                .as_ref()
                .map(|cancel| format!("cancelled by {}", cancel.by)),
            (RunEnd::Succeeded, ..) => None,
        }
    }

    pub(super) fn refresh_status(&mut self) {
        let (from, to) = (self.state.operation.status, self.status());
        if from != to {
            self.state.operation.status = to;
            self.event(EventKind::StatusChanged { from, to });
        }
    }

    fn status(&self) -> OperationStatus {
        match self.state.run().end {
            Some(RunEnd::Succeeded) => return OperationStatus::Succeeded,
            Some(RunEnd::Failed) => return OperationStatus::Failed,
            Some(RunEnd::Cancelled) => return OperationStatus::Cancelled,
            None => {}
        }
        let counts = self.state.counts;
        let progress = &self.state.operation.progress;
        if progress.cancel.is_some() {
            let only_unknown = counts.live == 0 && counts.unresolved > 0;
            return if only_unknown {
                OperationStatus::Unresolved
            } else {
                OperationStatus::Cancelling
            };
        }
        if progress.paused {
            return OperationStatus::Paused;
        }
        match &progress.claims {
            ClaimsState::Wanted { blockers, .. } if !blockers.is_empty() => return OperationStatus::WaitingClaim,
            ClaimsState::Held { .. } if !progress.begun => return OperationStatus::Validating,
            _ if !progress.begun => return OperationStatus::Pending,
            _ => {}
        }
        if counts.live + counts.soon > 0 || self.has_startable() {
            OperationStatus::Running
        } else if counts.unresolved > 0 {
            OperationStatus::Unresolved
        } else if counts.held > 0 {
            OperationStatus::WaitingIntervention
        } else if counts.gates_holding + counts.gates_releasing > 0 {
            OperationStatus::WaitingGate
        } else {
            OperationStatus::Running
        }
    }
}
