//! Whether bound resources are still what was planned with. Compared is the pin, not the version: health
//! or a neighbour's last update void no plan. What this operation changed itself has not moved.

use std::collections::HashMap;

use chrono::Duration;
use kernel::id::ResourceUid;

use super::Decider;
use super::flow::WindDown;
use crate::contract::failure;
use crate::index::NodeIx;
use crate::row::{BindingRow, Moved, NodeWait, RunFailure, ValidationState};
use crate::{
    BindingFound, BindingToValidate, Effect, EffectId, EffectKind, EventKind, GateState, NodeReason, NodeState,
    ValidatedBinding,
};

impl Decider<'_> {
    /// Asks the catalog about everything bound, while holding it.
    pub(super) fn ask_bindings(&mut self, failures: u32) {
        let resources = self.bindings_of(|_| true);
        if resources.is_empty() {
            return self.begin();
        }
        let request = self.ask(resources);
        self.state.operation.progress.validation = ValidationState::Asked { request, failures };
        self.record.touched = true;
    }

    /// Asks about the targets of a node that destroys something.
    pub(super) fn ask_targets(&mut self, ix: NodeIx, targets: &[ResourceUid], failures: u32) {
        let resources = self.bindings_of(|uid| targets.contains(&uid));
        let request = self.ask(resources);
        self.change(ix, |row| {
            row.state = NodeState::Waiting;
            row.wait = Some(NodeWait::Validation { request, failures });
        });
    }

    fn bindings_of(&self, wanted: impl Fn(ResourceUid) -> bool) -> Vec<BindingToValidate> {
        let bindings = self.state.plan.bindings().filter(|(_, resource)| wanted(resource.uid));
        let to_validate = bindings.map(|(slot, resource)| BindingToValidate {
            slot: slot.to_owned(),
            uid: resource.uid,
            resource_id: resource.resource_id.clone(),
        });
        to_validate.collect()
    }

    fn ask(&mut self, resources: Vec<BindingToValidate>) -> EffectId {
        let id = EffectId(self.ids.next_id());
        self.record.effects.push(Effect {
            id,
            kind: EffectKind::ValidateBindings { resources },
        });
        id
    }

    fn begin(&mut self) {
        self.state.operation.progress.validation = ValidationState::Valid { at: self.now };
        self.state.operation.progress.begun = true;
        self.record.touched = true;
    }

    pub(super) fn bindings_validated(&mut self, asked: EffectId, found: &[ValidatedBinding]) {
        if let ValidationState::Asked { request, .. } = self.state.operation.progress.validation
            && request == asked
        {
            return self.run_validated(found);
        }
        if let Some(ix) = self.waiting_for(asked) {
            self.node_validated(ix, found);
        }
    }

    fn run_validated(&mut self, found: &[ValidatedBinding]) {
        let moved = self.compare(found, |_| true);
        if moved.is_empty() {
            self.event(EventKind::BindingsValidated);
            self.begin();
            return;
        }
        self.event(EventKind::BindingsMoved {
            resources: moved.iter().map(|moved| moved.resource_id.clone()).collect(),
        });
        self.void_gates();
        self.fail_run(RunFailure::BindingsMoved { moved });
    }

    /// What was approved is not what is there any more.
    fn void_gates(&mut self) {
        let passed = self.state.gates.values().filter(|gate| gate.state == GateState::Passed);
        let ids: Vec<_> = passed.map(|gate| gate.id).collect();
        for id in ids {
            self.close_gate(id, GateState::Void);
        }
    }

    fn waiting_for(&self, asked: EffectId) -> Option<NodeIx> {
        let waits = |row: &crate::row::NodeRunRow| matches!(row.wait, Some(NodeWait::Validation { request, .. }) if request == asked);
        self.state.cells.iter().position(|cell| waits(&cell.row))
    }

    fn node_validated(&mut self, ix: NodeIx, found: &[ValidatedBinding]) {
        let targets = self.targets_of(ix);
        let moved = self.compare(found, |uid| targets.contains(&uid));
        if moved.is_empty() {
            self.change(ix, |row| {
                row.state = NodeState::Ready;
                row.wait = None;
                row.revalidated = true;
            });
            self.state.arrived.insert(ix);
        } else {
            let names: Vec<String> = moved.iter().map(|moved| moved.resource_id.to_string()).collect();
            let message = format!("not what was planned with any more: {}", names.join(", "));
            self.fail(ix, failure(NodeState::Failed, NodeReason::BindingsMoved, message));
        }
    }

    /// Keeps what was confirmed and returns what moved.
    fn compare(&mut self, found: &[ValidatedBinding], wanted: impl Fn(ResourceUid) -> bool) -> Vec<Moved> {
        let found: HashMap<(ResourceUid, &str), &BindingFound> =
            found.iter().map(|b| ((b.uid, b.slot.as_str()), &b.found)).collect();
        let plan = std::sync::Arc::clone(&self.state.plan);
        let mut moved = Vec::new();
        for (slot, resource) in plan.bindings().filter(|(_, resource)| wanted(resource.uid)) {
            let known = self.state.bindings.get(&(resource.uid, slot.to_owned()));
            let differs = |gone: bool, parts: Vec<String>| Moved {
                uid: resource.uid,
                resource_id: resource.resource_id.clone(),
                gone,
                parts,
            };
            match found.get(&(resource.uid, slot)) {
                None | Some(BindingFound::Gone) => moved.push(differs(true, Vec::new())),
                Some(BindingFound::Present {
                    pin,
                    version,
                    connection,
                    differing,
                }) => {
                    let ours = known.is_some_and(|row| row.pin == *pin || row.ours == Some(*version));
                    if *pin != resource.pin && !ours {
                        moved.push(differs(false, differing.clone()));
                        continue;
                    }
                    let row = BindingRow {
                        uid: resource.uid,
                        slot: slot.to_owned(),
                        resource_id: resource.resource_id.clone(),
                        resource_type: resource.resource_type.clone(),
                        pin: *pin,
                        version: *version,
                        ours: None,
                        connection: connection.clone(),
                    };
                    let key = (resource.uid, slot.to_owned());
                    self.record.bindings.insert(key.clone());
                    self.state.bindings.insert(key, row);
                }
            }
        }
        moved
    }

    pub(super) fn catalog_unreachable(&mut self, asked: EffectId, detail: &str) {
        let progress = &mut self.state.operation.progress;
        if let ValidationState::Asked { request, failures } = progress.validation
            && request == asked
        {
            progress.validation = ValidationState::Again {
                at: self.now + patience(failures),
                failures: failures + 1,
            };
            let detail = detail.to_owned();
            return self.event(EventKind::CatalogUnreachable { detail });
        }
        let Some(ix) = self.waiting_for(asked) else { return };
        if let Some(NodeWait::Validation { failures, .. }) = self.state.cells[ix].row.wait {
            let at = self.now + patience(failures);
            self.change(ix, |row| {
                row.wait = Some(NodeWait::ValidationAgain {
                    at,
                    failures: failures + 1,
                });
            });
            let detail = detail.to_owned();
            self.event(EventKind::CatalogUnreachable { detail });
        }
    }

    pub(super) fn cancel_wind_down(&mut self) {
        self.wind_down(WindDown::Cancelled);
    }
}

/// 5 s, doubled with every failure in a row, at most a minute.
fn patience(failures: u32) -> Duration {
    Duration::seconds((5_i64 << failures.min(4)).min(60))
}
