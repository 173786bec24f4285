//! Deciding: one step of one operation.
//!
//! Inputs are taken in order; nothing is started before all of them are taken, so a cancel that comes
//! with the start finds nothing running. After each input everything that follows from it by itself
//! (nodes ending, dependents skipped, a run ending) has followed.

mod attempt;
mod binding;
mod carry;
mod claim;
mod command;
mod conclude;
mod flow;
mod gate;
mod outputs;
mod record;
mod retry;
mod start;
mod timer;
mod update;

use std::collections::VecDeque;

use chrono::{DateTime, Utc};

use crate::index::NodeIx;
use crate::state::OperationState;
use crate::{Actor, Cause, Decision, EventKind, Expressions, IdSource, Input, NewOperation};

use record::Record;

/// A new operation at its first rows and events. To be told [`Input::Started`] next.
#[must_use]
pub fn create(new: NewOperation, now: DateTime<Utc>) -> Decision {
    let requester = new.requester.clone();
    let plan_digest = new.plan.document().digest();
    let mut state = OperationState::fresh(new, now);
    let mut record = Record::new(Actor::Person(requester.clone()), Cause::Start);
    record.event(&mut state, now, EventKind::OperationCreated { requester, plan_digest });
    let plan_revision = state.plan.revision();
    record.event(&mut state, now, EventKind::RunOpened { run: 1, plan_revision });
    record.runs.insert(1);
    record.nodes.extend(0..state.plan.len());
    record.finish(state)
}

/// What follows for `state` from `inputs` at `now`. A clock that went back is not followed: an
/// operation's time never runs before its last event.
#[must_use]
pub fn decide(
    state: OperationState,
    inputs: &[Input],
    now: DateTime<Utc>,
    ids: &mut dyn IdSource,
    expressions: &dyn Expressions,
) -> Decision {
    let now = now.max(state.operation.last_event_at);
    let mut decider = Decider {
        state,
        now,
        ids,
        expressions,
        record: Record::new(Actor::ControlPlane, Cause::Timer),
        ended: VecDeque::new(),
        new_startable: Vec::new(),
    };
    decider.due();
    decider.follow();
    for input in inputs {
        decider.take(input);
        decider.follow();
    }
    decider.start_what_may();
    decider.record.finish(decider.state)
}

struct Decider<'a> {
    state: OperationState,
    now: DateTime<Utc>,
    ids: &'a mut dyn IdSource,
    expressions: &'a dyn Expressions,
    record: Record,
    /// Ended nodes whose dependents have not been told.
    ended: VecDeque<NodeIx>,
    /// Nodes that became startable in this decision.
    new_startable: Vec<NodeIx>,
}

impl Decider<'_> {
    fn take(&mut self, input: &Input) {
        let (actor, cause) = origin(input);
        self.record.actor = actor;
        self.record.cause = cause;
        match input {
            Input::Started => self.started(),
            Input::ClaimsGranted { request } => self.claims_granted(*request),
            Input::ClaimsWaiting { request, blockers } => self.claims_waiting(*request, blockers),
            Input::ClaimsRefused { request, blockers } => self.claims_refused(*request, blockers),
            Input::BindingsValidated { request, bindings } => self.bindings_validated(*request, bindings),
            Input::CatalogUnreachable { request, detail } => self.catalog_unreachable(*request, detail),
            Input::AttemptAccepted { attempt_id } => self.attempt_accepted(*attempt_id),
            Input::AttemptRefused {
                attempt_id,
                category,
                detail,
            } => self.attempt_refused(*attempt_id, *category, detail),
            Input::AttemptStarted { attempt_id, at, runner } => {
                self.attempt_started(*attempt_id, *at, runner.as_deref());
            }
            Input::AttemptResult(result) => self.attempt_result(result),
            Input::UpdateOutcome { command_id, outcome } => self.update_outcome(*command_id, outcome),
            Input::Timer => {}
            Input::Command(command) => self.command(command),
        }
    }

    fn event(&mut self, kind: EventKind) {
        self.record.event(&mut self.state, self.now, kind);
    }
}

fn origin(input: &Input) -> (Actor, Cause) {
    match input {
        Input::Started => (Actor::ControlPlane, Cause::Start),
        Input::ClaimsGranted { .. } | Input::ClaimsWaiting { .. } | Input::ClaimsRefused { .. } => {
            (Actor::ControlPlane, Cause::Claims)
        }
        Input::BindingsValidated { .. } | Input::CatalogUnreachable { .. } => (Actor::Catalog, Cause::Validation),
        Input::AttemptAccepted { attempt_id }
        | Input::AttemptRefused { attempt_id, .. }
        | Input::AttemptStarted { attempt_id, .. } => (Actor::ExecutionPlane, Cause::Attempt(*attempt_id)),
        Input::AttemptResult(result) => (Actor::ExecutionPlane, Cause::Attempt(result.attempt_id)),
        Input::UpdateOutcome { command_id, .. } => (Actor::Catalog, Cause::Update(*command_id)),
        Input::Timer => (Actor::ControlPlane, Cause::Timer),
        Input::Command(command) => (Actor::Person(command.actor.subject.clone()), Cause::Command(command.id)),
    }
}
