//! Commands: checked against the state, applied once, answered. A repeat gets the first answer; what is
//! refused changes nothing.

use chrono::Duration;
use control_plane_plan::{Job, NodeKind};

use super::Decider;
use crate::contract::evidence_holds;
use crate::index::NodeIx;
use crate::row::{CancelProgress, CommandRow, NodeWait};
use crate::{
    Command, CommandAnswer, CommandKind, CommandOutcome, EffectKind, EventKind, NodeReason, NodeState, OperationStatus,
    Refusal, RefusalCode, Resolution,
};

/// How long attempts have to end by themselves after a cancel before they are ended by force.
const CANCEL_GRACE: Duration = Duration::seconds(60);

pub(super) type Refused = Refusal;

pub(super) fn refuse<T>(code: RefusalCode, detail: impl Into<String>, remedy: impl Into<String>) -> Result<T, Refused> {
    Err(Refusal {
        code,
        detail: detail.into(),
        remedy: remedy.into(),
    })
}

impl Decider<'_> {
    pub(super) fn command(&mut self, command: &Command) {
        if let Some(known) = self.state.commands.get(&command.id) {
            self.record.outcomes.push(known.outcome.clone());
            return;
        }
        let answer = match self.apply(command) {
            Ok(()) => {
                self.follow();
                CommandAnswer::Accepted {
                    status: self.state.operation.status,
                    run: self.state.operation.run,
                    plan_revision: self.state.operation.plan_revision,
                    revision: self.state.operation.revision + 1,
                }
            }
            Err(refusal) => CommandAnswer::Refused(refusal),
        };
        let outcome = CommandOutcome { id: command.id, answer };
        let row = CommandRow {
            outcome: outcome.clone(),
            kind: command.kind.as_str().to_owned(),
            actor: command.actor.subject.clone(),
            reason: command.reason.clone(),
            at: self.now,
        };
        self.state.commands.insert(command.id, row.clone());
        self.record.commands.push(row);
        self.record.outcomes.push(outcome);
    }

    fn apply(&mut self, command: &Command) -> Result<(), Refused> {
        self.expected(command)?;
        match &command.kind {
            CommandKind::ApproveGate { gate, digest } => {
                let ix = self.decidable(*gate, *digest, &command.actor)?;
                self.accepted(command);
                self.approve(*gate, ix, &command.actor.subject, command.reason.as_deref());
            }
            CommandKind::RejectGate { gate, digest } => {
                let ix = self.decidable(*gate, *digest, &command.actor)?;
                self.accepted(command);
                self.reject(*gate, ix, &command.actor.subject, command.reason.as_deref());
            }
            CommandKind::Pause => self.pause(command)?,
            CommandKind::Resume => self.resume(command)?,
            CommandKind::Retry { selection, revision } => self.retry(command, selection, revision.as_ref())?,
            CommandKind::Skip { node } => self.skip_node(command, node)?,
            CommandKind::Cancel => self.cancel(command)?,
            CommandKind::ForceCancel => self.force_cancel(command)?,
            CommandKind::Resolve { node, resolution } => self.resolve(command, node, resolution)?,
        }
        Ok(())
    }

    fn expected(&self, command: &Command) -> Result<(), Refused> {
        let current = self.state.operation.revision + u64::from(self.record.changed());
        match command.expected_revision {
            Some(expected) if expected != current => refuse(
                RefusalCode::StaleRevision,
                format!("the operation is at revision {current}, not {expected}"),
                "read the operation again",
            ),
            _ => Ok(()),
        }
    }

    pub(super) fn accepted(&mut self, command: &Command) {
        self.event(EventKind::CommandAccepted {
            command: command.kind.as_str().to_owned(),
            id: command.id,
            reason: command.reason.clone(),
        });
    }

    /// Refuses what makes no sense once the run has ended, or only waits for what still runs.
    fn run_goes_on(&self) -> Result<(), Refused> {
        if self.state.operation.status.is_end() {
            let detail = format!("the operation is {}", self.state.operation.status);
            let remedy = match self.state.operation.status {
                OperationStatus::Failed => "retry it: that opens its next run",
                _ => "start a new operation",
            };
            return refuse(RefusalCode::OperationOver, detail, remedy);
        }
        if self.cancelling() {
            let detail = "the operation is being cancelled";
            return refuse(
                RefusalCode::AlreadyCancelling,
                detail,
                self.until_end("wait for its end"),
            );
        }
        if self.state.winding_down() {
            let detail = "the run has failed and only waits for what still runs";
            return refuse(
                RefusalCode::RunEnding,
                detail,
                self.until_end("wait for its end, then retry"),
            );
        }
        Ok(())
    }

    /// What helps while a run only comes to its end: time, unless an outcome is not known.
    pub(super) fn until_end(&self, otherwise: &str) -> String {
        match self.unresolved_nodes() {
            None => otherwise.to_owned(),
            Some(nodes) => format!("resolve {nodes} first: say what really became of it"),
        }
    }

    /// The nodes whose outcome is not known, as text.
    pub(super) fn unresolved_nodes(&self) -> Option<String> {
        let cells = self.state.cells.iter();
        let unresolved = cells.filter(|cell| cell.row.state == NodeState::Unresolved);
        let names: Vec<&str> = unresolved.map(|cell| cell.row.node.as_str()).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    fn pause(&mut self, command: &Command) -> Result<(), Refused> {
        self.run_goes_on()?;
        if self.state.operation.progress.paused {
            return refuse(
                RefusalCode::AlreadyPaused,
                "the operation is paused already",
                "resume it",
            );
        }
        self.accepted(command);
        self.state.operation.progress.paused = true;
        Ok(())
    }

    fn resume(&mut self, command: &Command) -> Result<(), Refused> {
        self.run_goes_on()?;
        if !self.state.operation.progress.paused {
            return refuse(
                RefusalCode::NotPaused,
                "the operation is not paused",
                self.until_end("nothing holds it back; see what it waits for"),
            );
        }
        self.accepted(command);
        self.state.operation.progress.paused = false;
        Ok(())
    }

    pub(super) fn known_node(&self, node: &str) -> Result<NodeIx, Refused> {
        match self.state.plan.position(node) {
            Some(ix) => Ok(ix),
            None => refuse(
                RefusalCode::UnknownNode,
                format!("the plan has no node {node}"),
                "list the operation's node runs",
            ),
        }
    }

    fn skip_node(&mut self, command: &Command, node: &str) -> Result<(), Refused> {
        self.run_goes_on()?;
        let ix = self.known_node(node)?;
        let remedy = match &self.state.plan.node(ix).action {
            NodeKind::Gate(_) => Some("a gate is decided, not skipped: approve or reject it"),
            NodeKind::Join => Some("a fan-out ends by its items: skip those"),
            NodeKind::Job(_) | NodeKind::ResourceUpdate(_) => None,
        };
        let state = self.state.cells[ix].row.state;
        let fits = matches!(state, NodeState::Pending | NodeState::Ready | NodeState::Waiting);
        if let Some(remedy) = remedy {
            return refuse(RefusalCode::NodeState, format!("{node} cannot be skipped"), remedy);
        }
        if !fits {
            let remedy = match state {
                NodeState::Unresolved => format!("resolve {node}: say what really became of it"),
                _ if state.is_live() => "let it end by itself, or cancel the operation".to_owned(),
                _ => "what has ended stays as it is: skip what has not started, or is held".to_owned(),
            };
            return refuse(RefusalCode::NodeState, format!("{node} is {state}"), remedy);
        }
        self.accepted(command);
        let reason = Some(NodeReason::Operator);
        self.end(ix, NodeState::Skipped, reason, command.reason.clone());
        Ok(())
    }

    fn cancel(&mut self, command: &Command) -> Result<(), Refused> {
        match self.run_goes_on() {
            Err(refusal) if refusal.code != RefusalCode::RunEnding => return Err(refusal),
            _ => {}
        }
        self.accepted(command);
        self.state.operation.progress.cancel = Some(CancelProgress {
            requested_at: self.now,
            by: command.actor.subject.clone(),
            force_at: self.now + CANCEL_GRACE,
            forced: false,
        });
        self.cancel_attempts(false);
        self.cancel_wind_down();
        Ok(())
    }

    /// Asks execution-plane to end every attempt that has not ended.
    fn cancel_attempts(&mut self, force: bool) {
        let ids: Vec<_> = self.state.attempts.keys().copied().collect();
        for id in ids {
            let Some(attempt) = self.state.attempts.get_mut(&id) else {
                continue;
            };
            attempt.cancel_requested = true;
            let node = attempt.node.clone();
            self.record.attempts.insert(id);
            self.event(EventKind::AttemptCancelRequested {
                node,
                attempt_id: id,
                force,
            });
            self.effect(EffectKind::CancelAttempt { attempt_id: id, force });
        }
    }

    pub(super) fn force_if_overdue(&mut self) {
        let now = self.now;
        let Some(cancel) = &mut self.state.operation.progress.cancel else {
            return;
        };
        if !cancel.forced && cancel.force_at <= now && self.state.counts.live > 0 {
            cancel.forced = true;
            self.record.touched = true;
            self.cancel_attempts(true);
        }
    }

    fn force_cancel(&mut self, command: &Command) -> Result<(), Refused> {
        if self.state.operation.status.is_end() {
            let detail = format!("the operation is {}", self.state.operation.status);
            return refuse(RefusalCode::OperationOver, detail, "nothing of it runs");
        }
        if !self.cancelling() {
            let detail = "the operation is not being cancelled";
            return refuse(RefusalCode::NotCancelling, detail, "cancel it first");
        }
        if self.state.counts.live == 0 {
            let detail = "nothing of the operation runs";
            let remedy = self.until_end("wait for its end");
            return refuse(RefusalCode::NothingToForce, detail, remedy);
        }
        self.accepted(command);
        self.cancel_attempts(true);
        let message = format!("declared unresolved by {}", command.actor.subject);
        let live = |ix: &NodeIx| self.state.cells[*ix].row.state.is_live();
        let nodes: Vec<NodeIx> = (0..self.state.cells.len()).filter(live).collect();
        for ix in nodes {
            self.unresolved(ix, NodeReason::Declared, message.clone());
        }
        Ok(())
    }

    fn resolve(&mut self, command: &Command, node: &str, resolution: &Resolution) -> Result<(), Refused> {
        if self.state.operation.status.is_end() {
            let detail = format!("the operation is {}", self.state.operation.status);
            return refuse(RefusalCode::OperationOver, detail, "nothing of it is unresolved");
        }
        let ix = self.known_node(node)?;
        let row = &self.state.cells[ix].row;
        let held = matches!(row.wait, Some(NodeWait::Intervention { .. }));
        if row.state != NodeState::Unresolved && !held {
            let remedy = match (self.unresolved_nodes(), row.state.is_live()) {
                (Some(nodes), _) => format!("only what is unresolved or held is resolved: {nodes}"),
                (None, true) => "wait for its end, or cancel the operation".to_owned(),
                (None, false) => "only what is unresolved or held is resolved; nothing is unresolved".to_owned(),
            };
            return refuse(RefusalCode::NodeState, format!("{node} is {}", row.state), remedy);
        }
        let Some(reason) = command.reason.clone().filter(|reason| !reason.trim().is_empty()) else {
            let remedy = "say how the outcome became known";
            return refuse(RefusalCode::ReasonRequired, "resolving needs a reason", remedy);
        };
        if let Resolution::Succeeded { evidence } = resolution {
            self.proves(ix, evidence)?;
        }
        self.accepted(command);
        match resolution {
            Resolution::Succeeded { evidence } => {
                let evidence = evidence.clone();
                self.change(ix, |row| row.evidence = evidence);
                self.end(ix, NodeState::Succeeded, Some(NodeReason::Operator), Some(reason));
            }
            Resolution::Failed => self.end(ix, NodeState::Failed, Some(NodeReason::Operator), Some(reason)),
        }
        Ok(())
    }

    /// Whether evidence given by hand meets what the node had to yield.
    fn proves(&self, ix: NodeIx, evidence: &[contracts::EvidenceRef]) -> Result<(), Refused> {
        let fault = match &self.state.plan.node(ix).action {
            NodeKind::Job(job) => self.job_fault(job, evidence),
            NodeKind::ResourceUpdate(update) => {
                let added = update
                    .changes
                    .provided_capabilities
                    .iter()
                    .flat_map(|provided| &provided.add);
                let proven = |name: &&kernel::DottedName| {
                    let passed = |e: &contracts::EvidenceRef| e.result == contracts::EvidenceResult::Passed;
                    evidence.iter().any(|e| e.capability == **name && passed(e))
                };
                let missing = added
                    .filter(|name| !proven(name))
                    .map(|name| format!("nothing proves {name}"));
                missing.take(1).next()
            }
            NodeKind::Gate(_) | NodeKind::Join => None,
        };
        match fault {
            Some(fault) => refuse(
                RefusalCode::EvidenceInsufficient,
                fault,
                "give passed evidence for everything that the node had to yield",
            ),
            None => Ok(()),
        }
    }

    fn job_fault(&self, job: &Job, evidence: &[contracts::EvidenceRef]) -> Option<String> {
        if let Some(name) = job.output_contract.artifacts.first() {
            return Some(format!("artifact {name} cannot be attested by hand"));
        }
        evidence_holds(&job.output_contract.evidence, &self.target_ids(job), evidence).err()
    }
}
