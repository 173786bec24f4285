//! A store in memory that keeps exactly what changes tell, and objects when they tell what must not be.

use std::collections::BTreeMap;

use control_plane_operation::row::{
    AttemptRow, BindingRow, CommandRow, GateRow, NodeRunRow, OperationRow, Rows, RunRow, UpdateRow,
};
use control_plane_operation::{AttemptState, Change, ClaimRequestId, GateId, GateState, InterventionId, UpdateState};
use kernel::id::{AttemptId, CommandId, ResourceUid};

#[derive(Clone, Default)]
pub struct Store {
    pub operation: Option<OperationRow>,
    pub runs: BTreeMap<u32, RunRow>,
    pub node_runs: BTreeMap<(u32, String), NodeRunRow>,
    pub attempts: BTreeMap<AttemptId, AttemptRow>,
    pub gates: BTreeMap<GateId, GateRow>,
    pub updates: BTreeMap<CommandId, UpdateRow>,
    pub bindings: BTreeMap<(ResourceUid, String), BindingRow>,
    pub commands: BTreeMap<InterventionId, CommandRow>,
    /// The live request for claims, and whether it is granted.
    pub claims: Option<(ClaimRequestId, bool)>,
}

impl Store {
    pub fn apply(&mut self, change: &Change) {
        match change.clone() {
            Change::Operation(row) => {
                if let Some(old) = &self.operation {
                    assert!(row.revision > old.revision, "a revision counts up");
                    assert!(row.last_event_at >= old.last_event_at, "time runs on");
                }
                self.operation = Some(row);
            }
            Change::Run(row) => {
                let old = self.runs.insert(row.number, row.clone());
                assert_ended_stays(old, row, |row| row.end.is_some());
            }
            Change::NodeRun(row) => {
                let old = self.node_runs.insert((row.run, row.node.clone()), row.clone());
                assert_ended_stays(old, row, |row| row.state.is_end());
            }
            Change::Attempt(row) => {
                let old = self.attempts.insert(row.id, row.clone());
                assert_ended_stays(old, row, |row| {
                    matches!(row.state, AttemptState::Ended | AttemptState::Refused)
                });
            }
            Change::Gate(row) => {
                let old = self.gates.insert(row.id, row.clone());
                // A pass may become void; nothing else about a decided gate changes.
                assert_ended_stays(old, row, |row| {
                    !matches!(row.state, GateState::Open | GateState::Passed)
                });
            }
            Change::Update(row) => {
                let old = self.updates.insert(row.command_id, row.clone());
                assert_ended_stays(old, row, |row| row.state != UpdateState::Sent);
            }
            Change::Binding(row) => {
                self.bindings.insert((row.uid, row.slot.clone()), row);
            }
            Change::Command(row) => {
                let old = self.commands.insert(row.outcome.id, row);
                assert!(old.is_none(), "a command is answered once");
            }
            Change::PlanRevised { .. } => {}
            Change::ClaimsWanted { request, .. } => {
                assert!(self.claims.is_none(), "one wish for claims at a time");
                self.claims = Some((request, false));
            }
            Change::ClaimsReleased { request } => {
                assert_eq!(
                    self.claims.map(|claims| claims.0),
                    Some(request),
                    "what was wanted is let go"
                );
                self.claims = None;
            }
        }
    }

    pub fn holds_claims(&self) -> bool {
        self.claims.is_some_and(|(_, granted)| granted)
    }

    pub fn rows(&self) -> Rows {
        Rows {
            operation: self.operation.clone().unwrap(),
            runs: self.runs.values().cloned().collect(),
            node_runs: self.node_runs.values().cloned().collect(),
            attempts: self.attempts.values().cloned().collect(),
            gates: self.gates.values().cloned().collect(),
            updates: self.updates.values().cloned().collect(),
            bindings: self.bindings.values().cloned().collect(),
            commands: self.commands.values().cloned().collect(),
        }
    }

    /// The row of the highest run of each node.
    pub fn latest(&self) -> BTreeMap<&str, &NodeRunRow> {
        self.node_runs
            .iter()
            .map(|((_, node), row)| (node.as_str(), row))
            .collect()
    }
}

fn assert_ended_stays<T: PartialEq + core::fmt::Debug>(old: Option<T>, new: T, ended: impl Fn(&T) -> bool) {
    if let Some(old) = old.filter(ended) {
        assert_eq!(old, new, "what has ended never changes");
    }
}
