//! Gates: opened when their turn comes, decided by a person who may, bound to what they cover.

use chrono::Duration;
use control_plane_plan::{Gate, GateExpiry};
use kernel::Sha256Digest;

use super::Decider;
use super::command::{Refused, refuse};
use crate::index::NodeIx;
use crate::row::{GateRow, NodeWait};
use crate::{CommandActor, EventKind, GateId, GateState, NodeReason, NodeState, RefusalCode};

impl Decider<'_> {
    pub(super) fn open_gate(&mut self, ix: NodeIx, gate: &Gate) {
        let digest = self.state.plan.edges(ix).digest;
        let digest = digest.expect("the index computes the digest of every gate node");
        let id = GateId(self.ids.next_id());
        let expires_at = gate
            .expires_after_seconds
            .map(|after| self.now + Duration::seconds(after.into()));
        let node = self.state.cells[ix].row.node.clone();
        let row = GateRow {
            id,
            run: self.state.operation.run,
            node: node.clone(),
            plan_revision: self.state.plan.revision(),
            digest,
            state: GateState::Open,
            role: gate.role.clone(),
            excluded: self.excluded(gate),
            opened_at: self.now,
            expires_at,
            decided_at: None,
            decided_by: None,
            comment: None,
        };
        self.state.gates.insert(id, row);
        self.record.gates.insert(id);
        self.event(EventKind::GateOpened {
            node,
            gate_id: id,
            digest,
            expires_at,
        });
        self.change(ix, |row| {
            row.state = NodeState::Waiting;
            row.wait = Some(NodeWait::Gate { gate: id, expires_at });
        });
    }

    /// Who asked for the operation, and who asked for this run: neither approves it.
    fn excluded(&self, gate: &Gate) -> Vec<String> {
        if !gate.requester_excluded {
            return Vec::new();
        }
        let mut excluded = vec![
            self.state.operation.requester.clone(),
            self.state.run().opened_by.clone(),
        ];
        excluded.dedup();
        excluded
    }

    /// The open gate with this id and its node, if `actor` may decide it by this digest.
    pub(super) fn decidable(
        &self,
        gate: GateId,
        digest: Sha256Digest,
        actor: &CommandActor,
    ) -> Result<NodeIx, Refused> {
        let Some(row) = self.state.gates.get(&gate) else {
            return refuse(
                RefusalCode::UnknownGate,
                "the operation has no such gate",
                "list the operation's gates",
            );
        };
        let position = self.state.plan.position(&row.node);
        let Some(ix) = position.filter(|_| row.state == GateState::Open) else {
            return refuse(
                RefusalCode::GateNotOpen,
                format!("the gate is {} already", row.state),
                "nothing is left to decide; read the gate's record",
            );
        };
        if row.digest != digest {
            return refuse(
                RefusalCode::DigestMismatch,
                format!(
                    "the decision is bound to {}, the gate covers {}",
                    digest.short(),
                    row.digest.short()
                ),
                "read again what the gate covers and decide on that",
            );
        }
        if !actor.roles.contains(&row.role) {
            return refuse(
                RefusalCode::RoleMissing,
                format!("only the role {} may decide this gate", row.role),
                "ask someone with that role",
            );
        }
        if row.excluded.contains(&actor.subject) {
            return refuse(
                RefusalCode::RequesterExcluded,
                "who asked for this run may not decide its gate",
                "ask another person",
            );
        }
        Ok(ix)
    }

    pub(super) fn approve(&mut self, gate: GateId, ix: NodeIx, by: &str, comment: Option<&str>) {
        let Some((node, digest)) = self.decided(gate, GateState::Passed, by, comment) else {
            return;
        };
        let message = format!("approved by {by}");
        let by = by.to_owned();
        self.event(EventKind::GatePassed {
            node,
            gate_id: gate,
            digest,
            by,
        });
        self.end(ix, NodeState::Succeeded, None, Some(message));
    }

    pub(super) fn reject(&mut self, gate: GateId, ix: NodeIx, by: &str, comment: Option<&str>) {
        let Some((node, _)) = self.decided(gate, GateState::Rejected, by, comment) else {
            return;
        };
        let message = format!("rejected by {by}");
        let by = by.to_owned();
        self.event(EventKind::GateRejected {
            node,
            gate_id: gate,
            by,
        });
        self.end(ix, NodeState::Failed, Some(NodeReason::Rejected), Some(message));
    }

    fn decided(
        &mut self,
        gate: GateId,
        state: GateState,
        by: &str,
        comment: Option<&str>,
    ) -> Option<(String, Sha256Digest)> {
        let row = self.state.gates.get_mut(&gate)?;
        row.state = state;
        row.decided_at = Some(self.now);
        row.decided_by = Some(by.to_owned());
        row.comment = comment.map(str::to_owned);
        self.record.gates.insert(gate);
        Some((row.node.clone(), row.digest))
    }

    /// Takes back a gate that has been asked, or whose turn has come, when nothing behind it can start any
    /// more. Before its turn it only is not asked.
    pub(super) fn withdraw(&mut self, ix: NodeIx) {
        let cell = &self.state.cells[ix];
        if cell.unmet > 0 || self.state.arrived.contains(&ix) {
            return;
        }
        match (cell.row.state, cell.row.wait.clone()) {
            (_, Some(NodeWait::Gate { gate, .. })) => self.close_gate(gate, GateState::Withdrawn),
            (NodeState::Pending | NodeState::Ready, None) => {}
            _ => return,
        }
        self.not_asked(ix);
    }

    pub(super) fn not_asked(&mut self, ix: NodeIx) {
        let message = "nothing behind it can start any more".to_owned();
        self.end(ix, NodeState::Skipped, Some(NodeReason::NothingBehind), Some(message));
    }

    /// Ends an asking without anybody's decision.
    pub(super) fn close_gate(&mut self, gate: GateId, state: GateState) {
        let Some(row) = self.state.gates.get_mut(&gate) else {
            return;
        };
        row.state = state;
        if state != GateState::Void {
            row.decided_at = Some(self.now);
        }
        let node = row.node.clone();
        self.record.gates.insert(gate);
        self.event(match state {
            GateState::Expired => EventKind::GateExpired { node, gate_id: gate },
            GateState::Withdrawn => EventKind::GateWithdrawn { node, gate_id: gate },
            GateState::Void => EventKind::GateVoided { node, gate_id: gate },
            _ => EventKind::GateClosed { node, gate_id: gate },
        });
    }
}

// Expiry has one meaning so far; a second one must be decided where gates expire.
const _: fn(GateExpiry) = |expiry| match expiry {
    GateExpiry::Deny => (),
};
