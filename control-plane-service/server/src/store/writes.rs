//! Everything that one transaction changes, of however many operations, gathered so that each table
//! is written by one statement and all statements are sent at once.

use std::collections::{BTreeMap, BTreeSet};

use control_plane_operation::row::{
    AttemptRow, BindingRow, CommandRow, GateRow, NodeRunRow, OperationRow, RunRow, UpdateRow,
};
use control_plane_operation::{Change, Event, GateId, InterventionId};
use database::OrgTransaction;
use kernel::Sha256Digest;
use kernel::id::{AttemptId, CommandId, OperationId, OrganizationId, ResourceUid};
use uuid::Uuid;

use super::effect::OwnedEffect;
use super::inbox::Told;
use super::wakeup::Wanted;
use super::{
    StoreError, attempt, binding, effect, event, gate, inbox, intervention, node_run, operation, resource_update, run,
    wakeup,
};

/// Rows to write, the last word on each.
#[derive(Default)]
pub struct Writes {
    operations: BTreeMap<OperationId, OperationRow>,
    runs: BTreeMap<(OperationId, u32), RunRow>,
    node_runs: BTreeMap<node_run::Key, NodeRunRow>,
    attempts: BTreeMap<AttemptId, (OperationId, AttemptRow)>,
    gates: BTreeMap<GateId, (OperationId, GateRow)>,
    updates: BTreeMap<CommandId, (OperationId, UpdateRow)>,
    bindings: BTreeMap<(OperationId, String, ResourceUid), BindingRow>,
    interventions: BTreeMap<(OperationId, InterventionId), CommandRow>,
    pub events: Vec<(OperationId, Event)>,
    pub effects: Vec<OwnedEffect>,
    pub done: BTreeSet<Uuid>,
    pub wakeups: BTreeMap<OperationId, Wanted>,
    pub told: Vec<(OperationId, Told)>,
    /// What body each new command came with.
    pub request_digests: BTreeMap<InterventionId, Sha256Digest>,
}

impl Writes {
    /// Takes a changed row. Claims and plan revisions are no rows of one operation's own and are the
    /// caller's to carry out: those are given back.
    pub fn change(&mut self, id: OperationId, change: Change) -> Option<Change> {
        match change {
            Change::Operation(row) => drop(self.operations.insert(id, row)),
            Change::Run(row) => drop(self.runs.insert((id, row.number), row)),
            Change::NodeRun(row) => drop(self.node_runs.insert((id, row.node.clone(), row.run), row)),
            Change::Attempt(row) => drop(self.attempts.insert(row.id, (id, row))),
            Change::Gate(row) => drop(self.gates.insert(row.id, (id, row))),
            Change::Update(row) => drop(self.updates.insert(row.command_id, (id, row))),
            Change::Binding(row) => drop(self.bindings.insert((id, row.slot.clone(), row.uid), row)),
            Change::Command(row) => drop(self.interventions.insert((id, row.outcome.id), row)),
            other @ (Change::PlanRevised { .. } | Change::ClaimsWanted { .. } | Change::ClaimsReleased { .. }) => {
                return Some(other);
            }
        }
        None
    }

    /// The operations whose own row changes, as it will be.
    pub fn changed_operations(&self) -> impl Iterator<Item = &OperationRow> {
        self.operations.values()
    }

    /// The node runs of an operation that change, as they will be.
    pub fn changed_node_runs(&self, id: OperationId) -> impl Iterator<Item = &NodeRunRow> {
        self.node_runs
            .range((id, String::new(), 0)..)
            .take_while(move |(key, _)| key.0 == id)
            .map(|(_, row)| row)
    }

    /// The events of an operation, in their order.
    pub fn events_of(&self, id: OperationId) -> impl Iterator<Item = &Event> {
        self.events
            .iter()
            .filter(move |(operation, _)| *operation == id)
            .map(|(_, event)| event)
    }

    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
            && self.interventions.is_empty()
            && self.events.is_empty()
            && self.effects.is_empty()
            && self.done.is_empty()
            && self.wakeups.is_empty()
            && self.told.is_empty()
    }

    /// Writes everything, statements pipelined.
    pub async fn flush(&self, tx: &OrgTransaction, organization: OrganizationId) -> Result<(), StoreError> {
        let done: Vec<Uuid> = self.done.iter().copied().collect();
        let rows = async {
            futures::try_join!(
                operation::write(tx, &self.operations),
                run::write(tx, organization, &self.runs),
                node_run::write(tx, organization, &self.node_runs),
                attempt::write(tx, organization, &self.attempts),
                gate::write(tx, organization, &self.gates),
                resource_update::write(tx, organization, &self.updates),
                binding::write(tx, organization, &self.bindings),
                intervention::write(tx, organization, &self.interventions, &self.request_digests),
            )
        };
        let work = async {
            futures::try_join!(
                event::write(tx, organization, &self.events),
                effect::write(tx, organization, &self.effects),
                effect::done(tx, &done),
                wakeup::write(tx, organization, &self.wakeups),
                inbox::write(tx, organization, &self.told),
            )
        };
        futures::try_join!(rows, work)?;
        Ok(())
    }
}
