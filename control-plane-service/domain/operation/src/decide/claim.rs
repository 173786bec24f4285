//! Claims and the command boundary: queue, hold, validate while holding, go.

use super::Decider;
use super::flow::WindDown;
use crate::row::{ClaimsState, RunFailure, ValidationState};
use crate::{Blocker, Change, ClaimRequestId, EventKind};

impl Decider<'_> {
    pub(super) fn started(&mut self) {
        let waits_for_start = self.state.operation.progress.claims == ClaimsState::None;
        if waits_for_start && !self.state.operation.status.is_end() && !self.state.winding_down() {
            self.want_claims();
        }
    }

    pub(super) fn want_claims(&mut self) {
        let request = ClaimRequestId(self.ids.next_id());
        let claims = self.state.plan.plan().claims.clone();
        self.state.operation.progress.validation = ValidationState::Needed;
        if claims.is_empty() {
            return self.hold_claims(request);
        }
        self.state.operation.progress.claims = ClaimsState::Wanted {
            request,
            since: self.now,
            blockers: Vec::new(),
        };
        self.record.steps.push(Change::ClaimsWanted {
            request,
            claims,
            wait: self.state.operation.progress.wait_for_claims,
        });
        self.event(EventKind::ClaimsWanted);
    }

    fn hold_claims(&mut self, request: ClaimRequestId) {
        self.state.operation.progress.claims = ClaimsState::Held {
            request,
            since: self.now,
        };
        self.record.touched = true;
        self.ask_bindings(0);
    }

    fn is_wanted(&self, asked: ClaimRequestId) -> bool {
        matches!(self.state.operation.progress.claims, ClaimsState::Wanted { request, .. } if request == asked)
    }

    pub(super) fn claims_granted(&mut self, request: ClaimRequestId) {
        if self.is_wanted(request) {
            self.event(EventKind::ClaimsGranted);
            self.hold_claims(request);
        }
    }

    pub(super) fn claims_waiting(&mut self, asked: ClaimRequestId, told: &[Blocker]) {
        let ClaimsState::Wanted { request, blockers, .. } = &mut self.state.operation.progress.claims else {
            return;
        };
        if *request == asked && blockers != told {
            *blockers = told.to_vec();
            self.event(EventKind::ClaimsWaiting {
                blockers: told.to_vec(),
            });
        }
    }

    pub(super) fn claims_refused(&mut self, request: ClaimRequestId, blockers: &[Blocker]) {
        if self.is_wanted(request) {
            self.event(EventKind::ClaimsRefused {
                blockers: blockers.to_vec(),
            });
            self.fail_run(RunFailure::ClaimsRefused {
                blockers: blockers.to_vec(),
            });
        }
    }

    pub(super) fn fail_run(&mut self, failure: RunFailure) {
        self.state.operation.progress.failure = Some(failure);
        self.wind_down(WindDown::Failed);
    }

    pub(super) fn release_claims_at_gate(&mut self) {
        self.drop_claims();
        self.state.operation.progress.claims = ClaimsState::Released { since: self.now };
        self.state.operation.progress.validation = ValidationState::Needed;
    }

    /// Lets go of what is held or queued for.
    pub(super) fn drop_claims(&mut self) {
        let claims = core::mem::take(&mut self.state.operation.progress.claims);
        if let ClaimsState::Wanted { request, .. } | ClaimsState::Held { request, .. } = claims
            && !self.state.plan.plan().claims.is_empty()
        {
            self.record.steps.push(Change::ClaimsReleased { request });
            self.event(EventKind::ClaimsReleased);
        }
    }
}
