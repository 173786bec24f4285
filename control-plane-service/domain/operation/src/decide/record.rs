//! What a decision has changed so far: the marks from which its rows are taken at the end, each once.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use kernel::id::{AttemptId, CommandId, ResourceUid};

use crate::index::NodeIx;
use crate::row::{AttemptRow, CommandRow, NodeRunRow, UpdateRow};
use crate::state::OperationState;
use crate::{Actor, Cause, Change, CommandOutcome, Decision, Effect, Event, EventKind, GateId};

pub(super) struct Record {
    pub(super) actor: Actor,
    pub(super) cause: Cause,
    events: Vec<Event>,
    pub(super) effects: Vec<Effect>,
    pub(super) outcomes: Vec<CommandOutcome>,
    pub(super) commands: Vec<CommandRow>,
    /// Claims and plan revisions, in order.
    pub(super) steps: Vec<Change>,
    pub(super) runs: BTreeSet<u32>,
    pub(super) nodes: BTreeSet<NodeIx>,
    pub(super) gates: BTreeSet<GateId>,
    pub(super) attempts: BTreeSet<AttemptId>,
    pub(super) updates: BTreeSet<CommandId>,
    pub(super) bindings: BTreeSet<(ResourceUid, String)>,
    /// Rows that left the state in this decision, at their last.
    pub(super) past_nodes: Vec<NodeRunRow>,
    pub(super) past_attempts: Vec<AttemptRow>,
    pub(super) past_updates: Vec<UpdateRow>,
    /// The operation's own row changed although nothing happened that is told.
    pub(super) touched: bool,
}

impl Record {
    pub(super) const fn new(actor: Actor, cause: Cause) -> Self {
        Self {
            actor,
            cause,
            events: Vec::new(),
            effects: Vec::new(),
            outcomes: Vec::new(),
            commands: Vec::new(),
            steps: Vec::new(),
            runs: BTreeSet::new(),
            nodes: BTreeSet::new(),
            gates: BTreeSet::new(),
            attempts: BTreeSet::new(),
            updates: BTreeSet::new(),
            bindings: BTreeSet::new(),
            past_nodes: Vec::new(),
            past_attempts: Vec::new(),
            past_updates: Vec::new(),
            touched: false,
        }
    }

    pub(super) fn event(&mut self, state: &mut OperationState, now: DateTime<Utc>, kind: EventKind) {
        let operation = &mut state.operation;
        operation.last_event += 1;
        operation.last_event_at = now;
        self.events.push(Event {
            sequence: operation.last_event,
            at: now,
            actor: self.actor.clone(),
            cause: self.cause.clone(),
            kind,
        });
    }

    /// Whether anything of the operation has changed.
    pub(super) fn changed(&self) -> bool {
        self.touched
            || !self.events.is_empty()
            || !self.steps.is_empty()
            || !self.nodes.is_empty()
            || !self.attempts.is_empty()
            || !self.past_attempts.is_empty()
    }

    pub(super) fn finish(self, mut state: OperationState) -> Decision {
        let mut changes = Vec::new();
        if self.changed() {
            state.operation.revision += 1;
            changes.push(Change::Operation(state.operation.clone()));
        }
        let runs = state.runs.iter().filter(|run| self.runs.contains(&run.number));
        changes.extend(runs.cloned().map(Change::Run));
        changes.extend(self.steps);
        changes.extend(self.past_nodes.into_iter().map(Change::NodeRun));
        changes.extend(
            self.nodes
                .iter()
                .map(|ix| Change::NodeRun(state.cells[*ix].row.clone())),
        );
        let gates = self.gates.iter().filter_map(|id| state.gates.get(id));
        changes.extend(gates.cloned().map(Change::Gate));
        changes.extend(self.past_attempts.into_iter().map(Change::Attempt));
        let attempts = self.attempts.iter().filter_map(|id| state.attempts.get(id));
        changes.extend(attempts.cloned().map(Change::Attempt));
        changes.extend(self.past_updates.into_iter().map(Change::Update));
        let updates = self.updates.iter().filter_map(|id| state.updates.get(id));
        changes.extend(updates.cloned().map(Change::Update));
        let bindings = self.bindings.iter().filter_map(|key| state.bindings.get(key));
        changes.extend(bindings.cloned().map(Change::Binding));
        changes.extend(self.commands.into_iter().map(Change::Command));
        Decision {
            next_wakeup: state.next_wakeup(),
            state,
            changes,
            events: self.events,
            effects: self.effects,
            command_outcomes: self.outcomes,
        }
    }
}
