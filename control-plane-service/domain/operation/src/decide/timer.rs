//! What is due at this time. A timer only means "ask again": what is due is read from the state.

use chrono::Duration;
use control_plane_plan::RetryPolicy;

use super::Decider;
use crate::index::NodeIx;
use crate::row::{NodeWait, ValidationState};
use crate::{GateState, NodeReason, NodeState};

impl Decider<'_> {
    pub(super) fn due(&mut self) {
        if self.state.operation.status.is_end() {
            return;
        }
        if let ValidationState::Again { at, failures } = self.state.operation.progress.validation
            && at <= self.now
            && !self.state.winding_down()
        {
            self.ask_bindings(failures);
        }
        while let Some((at, ix)) = self.state.timers.first().copied() {
            if at > self.now {
                break;
            }
            self.node_due(ix);
        }
        self.force_if_overdue();
    }

    fn node_due(&mut self, ix: NodeIx) {
        match self.state.cells[ix].row.wait.clone() {
            Some(NodeWait::Gate { gate, .. }) => {
                self.close_gate(gate, GateState::Expired);
                let message = "not decided in time".to_owned();
                self.end(ix, NodeState::Failed, Some(NodeReason::Expired), Some(message));
            }
            Some(NodeWait::Retry { .. }) => self.try_again(ix),
            Some(NodeWait::ValidationAgain { failures, .. }) => {
                let targets = self.targets_of(ix);
                self.ask_targets(ix, &targets, failures);
            }
            _ => {}
        }
        self.follow();
    }

    /// Lets a waiting node arrive once more: its condition is looked at again, too.
    pub(super) fn try_again(&mut self, ix: NodeIx) {
        self.change(ix, |row| {
            row.state = NodeState::Ready;
            row.reason = None;
            row.message = None;
            row.wait = None;
            row.revalidated = false;
        });
        self.state.arrived.insert(ix);
    }

    /// How long to wait before attempt `made + 1`: doubled with every attempt, within the policy's bound,
    /// then somewhere in the upper half of that, so that what failed together does not return together.
    pub(super) fn backoff(&mut self, policy: &RetryPolicy, made: u32) -> Duration {
        let doubled = i64::from(policy.backoff_seconds) << made.saturating_sub(1).min(20);
        let full = doubled.min(i64::from(policy.backoff_max_seconds)) * 1_000;
        Duration::milliseconds(full / 2 + full / 2 * i64::from(self.ids.jitter().min(999)) / 1_000)
    }
}
