//! Resource updates: what became true is told to the catalog, with the evidence for it. A version that
//! moved in fields that are not ours is rebased under a new command id; otherwise the node is held.

use std::collections::BTreeMap;

use contracts::{Changes, EvidenceRef, EvidenceResult, ResourceUpdateCommand};
use control_plane_plan::{NodeKind, ResourceUpdate};
use kernel::Sha256Digest;
use kernel::id::{CommandId, ResourceUid};

use super::Decider;
use super::outputs::unusable;
use crate::contract::failure;
use crate::index::NodeIx;
use crate::row::{Failure, UpdateRow};
use crate::{EffectKind, EventKind, NodeReason, NodeState, UpdateOutcome, UpdateState};

/// How often one update runs after a busy neighbour before a person is asked.
const MAX_REBASES: u32 = 16;

impl Decider<'_> {
    pub(super) fn start_update(&mut self, ix: NodeIx, update: &ResourceUpdate) {
        match self.prepared(ix, update) {
            Ok((changes, evidence, version)) => {
                let row = UpdateRow {
                    command_id: CommandId(self.ids.next_id()),
                    run: self.state.operation.run,
                    node: self.state.cells[ix].row.node.clone(),
                    uid: update.uid,
                    resource_id: update.resource_id.clone(),
                    expected_version: version,
                    changes,
                    evidence,
                    state: UpdateState::Sent,
                    rebases: 0,
                    sent_at: self.now,
                    settled_at: None,
                    version: None,
                };
                self.send(ix, row);
            }
            Err(failure) => self.fail(ix, failure),
        }
    }

    fn prepared(&self, ix: NodeIx, update: &ResourceUpdate) -> Result<(Changes, Vec<EvidenceRef>, i64), Failure> {
        let changes = self.changes(ix, update)?;
        let evidence = self.evidence_for(ix, update);
        for capability in changes.provided_capabilities.iter().flat_map(|provided| &provided.add) {
            if !evidence.iter().any(|evidence| evidence.capability == *capability) {
                let message = format!("nothing proves {capability} on {}", update.resource_id);
                return Err(failure(NodeState::Failed, NodeReason::EvidenceMissing, message));
            }
        }
        let Some(binding) = self.state.binding(update.uid) else {
            let message = format!("{} is not bound", update.resource_id);
            return Err(failure(NodeState::Failed, NodeReason::BindingsMoved, message));
        };
        Ok((changes, evidence, binding.version))
    }

    fn changes(&self, ix: NodeIx, update: &ResourceUpdate) -> Result<Changes, Failure> {
        if update.deferred.is_empty() {
            return Ok(update.changes.clone());
        }
        let plain = serde_json::to_value(&update.changes).map_err(|error| unusable(error.to_string()))?;
        let filled = self.filled(ix, plain, &update.deferred)?;
        serde_json::from_value(filled).map_err(|error| unusable(format!("the update's changes are unusable: {error}")))
    }

    /// Passed evidence of the nodes named, about this resource or about none in particular.
    fn evidence_for(&self, ix: NodeIx, update: &ResourceUpdate) -> Vec<EvidenceRef> {
        let sources = update.evidence_from.iter().flat_map(|name| self.sources(ix, name));
        let evidence = sources.flat_map(|source| &self.state.cells[source].row.evidence);
        let fits = |evidence: &&EvidenceRef| {
            let about = evidence.resource_id.as_ref();
            evidence.result == EvidenceResult::Passed && about.is_none_or(|id| *id == update.resource_id)
        };
        evidence.filter(fits).cloned().collect()
    }

    /// The node of that name: of a fan-out this item's, or else all items.
    fn sources(&self, ix: NodeIx, name: &str) -> Vec<NodeIx> {
        let plan = &self.state.plan;
        let own = plan.node(ix).item.as_ref();
        if let Some(found) = own.and_then(|item| plan.position(&format!("{name}[{}]", item.key))) {
            return vec![found];
        }
        match plan.position(name) {
            Some(found) if matches!(plan.node(found).action, NodeKind::Join) => plan.edges(found).items.clone(),
            Some(found) => vec![found],
            None => Vec::new(),
        }
    }

    fn send(&mut self, ix: NodeIx, update: UpdateRow) {
        let command = ResourceUpdateCommand {
            command_id: update.command_id,
            operation_id: self.state.operation.id,
            resource_id: update.resource_id.clone(),
            expected_version: update.expected_version,
            changes: update.changes.clone(),
            evidence: update.evidence.clone(),
            uid: Some(update.uid),
            traceparent: None,
        };
        let id = update.command_id;
        self.event(EventKind::UpdateSent {
            node: update.node.clone(),
            command_id: id,
            resource_id: update.resource_id.clone(),
            expected_version: update.expected_version,
        });
        self.state.updates.insert(id, update);
        self.record.updates.insert(id);
        self.change(ix, |row| {
            row.state = NodeState::Dispatched;
            row.update = Some(id);
        });
        self.effect(EffectKind::SendResourceUpdate {
            command: Box::new(command),
        });
    }

    pub(super) fn update_outcome(&mut self, id: CommandId, outcome: &UpdateOutcome) {
        let Some(mut update) = self.state.updates.remove(&id) else {
            return;
        };
        let node = self.node_of_update(&update);
        update.settled_at = Some(self.now);
        match outcome {
            UpdateOutcome::Applied { version, pins } => self.applied(update, node, *version, pins),
            UpdateOutcome::Conflict {
                current_version,
                overlaps,
                differing,
                other_incarnation,
            } => {
                update.version = Some(*current_version);
                let held = *overlaps || *other_incarnation || update.rebases >= MAX_REBASES;
                match node {
                    Some(ix) if !held && !self.state.winding_down() => self.rebase(ix, update, *current_version),
                    _ => self.conflicted(update, node, differing, *other_incarnation),
                }
            }
            UpdateOutcome::Rejected { detail } => {
                update.state = UpdateState::Rejected;
                self.refused(&update, detail);
                self.close_update(update);
                if let Some(ix) = node {
                    self.fail_update(ix, NodeReason::UpdateRejected, detail.clone());
                }
            }
        }
    }

    fn node_of_update(&self, update: &UpdateRow) -> Option<NodeIx> {
        let ix = self.state.plan.position(&update.node)?;
        let row = &self.state.cells[ix].row;
        let waits = row.state.is_live() || row.state == NodeState::Unresolved;
        (waits && row.update == Some(update.command_id)).then_some(ix)
    }

    fn close_update(&mut self, update: UpdateRow) {
        self.record.updates.remove(&update.command_id);
        self.record.past_updates.push(update);
    }

    fn applied(
        &mut self,
        mut update: UpdateRow,
        node: Option<NodeIx>,
        version: i64,
        pins: &BTreeMap<String, Sha256Digest>,
    ) {
        update.state = UpdateState::Applied;
        update.version = Some(version);
        self.event(EventKind::UpdateApplied {
            node: update.node.clone(),
            command_id: update.command_id,
            resource_id: update.resource_id.clone(),
            version,
        });
        self.ours(update.uid, version, pins);
        let evidence = update.evidence.clone();
        self.close_update(update);
        if let Some(ix) = node {
            self.change(ix, |row| row.evidence = evidence);
            self.end(ix, NodeState::Succeeded, None, None);
        }
    }

    /// Remembers that the resource's latest version is of our own making.
    fn ours(&mut self, uid: ResourceUid, version: i64, pins: &BTreeMap<String, Sha256Digest>) {
        for (key, row) in self.state.bindings.range_mut((uid, String::new())..) {
            if key.0 != uid {
                break;
            }
            row.version = row.version.max(version);
            match pins.get(&row.slot) {
                Some(pin) => row.pin = *pin,
                None => row.ours = Some(version),
            }
            self.record.bindings.insert(key.clone());
        }
    }

    fn rebase(&mut self, ix: NodeIx, mut update: UpdateRow, current: i64) {
        let mut next = update.clone();
        next.command_id = CommandId(self.ids.next_id());
        next.expected_version = current;
        next.rebases += 1;
        next.sent_at = self.now;
        next.settled_at = None;
        next.version = None;
        update.state = UpdateState::Rebased;
        self.event(EventKind::UpdateRebased {
            node: update.node.clone(),
            command_id: update.command_id,
            replaced_by: next.command_id,
            version: current,
        });
        self.close_update(update);
        self.send(ix, next);
    }

    fn conflicted(&mut self, mut update: UpdateRow, node: Option<NodeIx>, differing: &[String], other: bool) {
        update.state = UpdateState::Conflict;
        let detail = if other {
            format!("{} is another incarnation by now", update.resource_id)
        } else {
            format!("{} has changed since in {}", update.resource_id, differing.join(", "))
        };
        self.refused(&update, &detail);
        let (uid, current) = (update.uid, update.version);
        self.close_update(update);
        let Some(ix) = node else { return };
        if let (Some(current), false) = (current, other) {
            // An operator who retries does so knowing the version that stands in the way.
            self.seen(uid, current);
        }
        if self.state.winding_down() {
            self.fail_update(ix, NodeReason::UpdateConflict, detail);
        } else {
            self.hold(ix, failure(NodeState::Failed, NodeReason::UpdateConflict, detail));
        }
    }

    fn seen(&mut self, uid: ResourceUid, version: i64) {
        for (key, row) in self.state.bindings.range_mut((uid, String::new())..) {
            if key.0 != uid {
                break;
            }
            row.version = row.version.max(version);
            self.record.bindings.insert(key.clone());
        }
    }

    fn refused(&mut self, update: &UpdateRow, detail: &str) {
        self.event(EventKind::UpdateRefused {
            node: update.node.clone(),
            command_id: update.command_id,
            detail: detail.to_owned(),
        });
    }

    fn fail_update(&mut self, ix: NodeIx, reason: NodeReason, detail: String) {
        if self.cancelling() {
            self.end_cancelled(ix, &detail);
        } else {
            self.fail(ix, failure(NodeState::Failed, reason, detail));
        }
    }
}
