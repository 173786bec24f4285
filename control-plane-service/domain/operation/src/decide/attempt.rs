//! Attempts of jobs: sent out, told of, judged. One node run has at most one live attempt; the first end
//! that is told stands.

use chrono::{DateTime, Utc};
use contracts::{
    ArtifactInput, ContentRef, Controls, ExecutionResult, ExitCategory, Inputs, JobSpec, JobStarted, JobType,
    RunnerRequest, ScenarioRef, Target, TargetResource,
};
use control_plane_plan::{Job, NodeKind};
use kernel::ResourceId;
use kernel::id::{AttemptId, ResourceUid};

use super::Decider;
use crate::contract::{Verdict, failure, judge, started};
use crate::index::NodeIx;
use crate::row::{AttemptRow, Failure, NodeWait};
use crate::{AttemptState, Effect, EffectId, EffectKind, EventKind, NodeReason, NodeState};

impl Decider<'_> {
    pub(super) fn start_job(&mut self, ix: NodeIx, job: &Job) {
        if self.state.plan.node(ix).destructive && !self.state.cells[ix].row.revalidated {
            return self.ask_targets(ix, &job.targets, 0);
        }
        let needs_targets = matches!(job.job_type, JobType::Ansible | JobType::Ssh);
        if needs_targets && job.targets.is_empty() {
            let message = "there is no target to run on".to_owned();
            return self.fail(ix, failure(NodeState::Failed, NodeReason::NoTargets, message));
        }
        let parameters = match self.filled(ix, serde_json::Value::Object(job.parameters.clone()), &job.deferred) {
            Ok(serde_json::Value::Object(parameters)) => parameters,
            Ok(_) => {
                let message = "the job's parameters are no object".to_owned();
                return self.fail(ix, failure(NodeState::Failed, NodeReason::Expression, message));
            }
            Err(failure) => return self.fail(ix, failure),
        };
        self.submit(ix, job, parameters);
    }

    fn submit(&mut self, ix: NodeIx, job: &Job, parameters: serde_json::Map<String, serde_json::Value>) {
        let id = AttemptId(self.ids.next_id());
        let spec = self.job_spec(ix, job, id, parameters);
        let now = self.now;
        let row = &self.state.cells[ix].row;
        let attempt = AttemptRow {
            id,
            run: row.run,
            node: row.node.clone(),
            number: row.attempts + 1,
            plan_revision: self.state.plan.revision(),
            state: AttemptState::Submitted,
            submitted_at: now,
            started_at: None,
            runner: None,
            ended_at: None,
            cancel_requested: false,
            result: None,
            late: false,
        };
        self.event(EventKind::AttemptSubmitted {
            run: attempt.run,
            node: attempt.node.clone(),
            attempt_id: id,
            number: attempt.number,
        });
        self.state.attempts.insert(id, attempt);
        self.record.attempts.insert(id);
        self.change(ix, |row| {
            row.state = NodeState::Dispatched;
            row.attempts += 1;
            row.attempt = Some(id);
        });
        self.effect(EffectKind::SubmitAttempt { spec: Box::new(spec) });
    }

    pub(super) fn effect(&mut self, kind: EffectKind) {
        let id = EffectId(self.ids.next_id());
        self.record.effects.push(Effect { id, kind });
    }

    fn job_spec(
        &self,
        ix: NodeIx,
        job: &Job,
        attempt_id: AttemptId,
        parameters: serde_json::Map<String, serde_json::Value>,
    ) -> JobSpec {
        let plan = self.state.plan.plan();
        let content = plan.scenario.content_digest.filter(|_| job.with_content);
        JobSpec {
            operation_id: self.state.operation.id,
            plan_node_id: self.state.plan.node(ix).id.clone(),
            attempt_id,
            job_type: job.job_type,
            runner: RunnerRequest {
                name: job.runner.clone(),
                isolation: job.isolation,
                labels: job.runner_labels.clone(),
            },
            target: Target {
                resources: job.targets.iter().filter_map(|uid| self.target(*uid)).collect(),
                environment: plan.environment.clone(),
            },
            inputs: Inputs {
                parameters,
                capabilities: job.capabilities.clone(),
                artifacts: job
                    .artifacts
                    .iter()
                    .map(|artifact_ref| ArtifactInput {
                        artifact_ref: artifact_ref.clone(),
                    })
                    .collect(),
                secrets: job.secrets.clone(),
            },
            output_contract: job.output_contract.clone(),
            controls: Controls {
                timeout_seconds: job.timeout_seconds,
                retry_policy_ref: Some(job.retry.name.clone()),
                allowed_commands_ref: job.allowed_commands_ref.clone(),
            },
            organization_id: Some(self.state.operation.organization_id),
            traceparent: None,
            scenario: Some(ScenarioRef {
                name: format!("{}/{}", plan.scenario.pack, plan.scenario.template),
                version: plan.scenario.pack_version.clone(),
            }),
            content: content.map(|sha256| ContentRef { sha256 }),
        }
    }

    fn target(&self, uid: ResourceUid) -> Option<TargetResource> {
        let resource = self.state.plan.resource(uid)?;
        Some(TargetResource {
            resource_id: resource.resource_id.clone(),
            resource_type: resource.resource_type.clone(),
            uid: Some(uid),
            connection: self.state.binding(uid).and_then(|binding| binding.connection.clone()),
        })
    }

    pub(super) fn targets_of(&self, ix: NodeIx) -> Vec<ResourceUid> {
        match &self.state.plan.node(ix).action {
            NodeKind::Job(job) => job.targets.clone(),
            _ => Vec::new(),
        }
    }

    pub(super) fn target_ids(&self, job: &Job) -> Vec<ResourceId> {
        let resources = job.targets.iter().filter_map(|uid| self.state.plan.resource(*uid));
        resources.map(|resource| resource.resource_id.clone()).collect()
    }

    /// The node whose live, or declared unresolved, attempt this is.
    fn node_of(&self, attempt: &AttemptRow) -> Option<NodeIx> {
        let ix = self.state.plan.position(&attempt.node)?;
        let row = &self.state.cells[ix].row;
        let waits = row.state.is_live() || row.state == NodeState::Unresolved;
        (waits && row.attempt == Some(attempt.id)).then_some(ix)
    }

    pub(super) fn attempt_accepted(&mut self, id: AttemptId) {
        let Some(attempt) = self.state.attempts.get_mut(&id) else {
            return;
        };
        if attempt.state == AttemptState::Submitted {
            attempt.state = AttemptState::Accepted;
            let node = attempt.node.clone();
            self.record.attempts.insert(id);
            self.event(EventKind::AttemptAccepted { node, attempt_id: id });
        }
    }

    pub(super) fn attempt_started(&mut self, id: AttemptId, at: DateTime<Utc>, runner: Option<&str>) {
        let Some(attempt) = self.state.attempts.get_mut(&id) else {
            return;
        };
        if attempt.state == AttemptState::Running {
            return;
        }
        attempt.state = AttemptState::Running;
        attempt.started_at = Some(at);
        attempt.runner = runner.map(str::to_owned);
        let attempt = attempt.clone();
        self.record.attempts.insert(id);
        self.event(EventKind::AttemptStarted {
            node: attempt.node.clone(),
            attempt_id: id,
            started_at: at,
            runner: attempt.runner.clone(),
        });
        let node = self.node_of(&attempt);
        if let Some(ix) = node.filter(|ix| self.state.cells[*ix].row.state == NodeState::Dispatched) {
            self.change(ix, |row| row.state = NodeState::Running);
        }
    }

    pub(super) fn attempt_refused(&mut self, id: AttemptId, category: ExitCategory, detail: &str) {
        let Some(mut attempt) = self.state.attempts.remove(&id) else {
            return;
        };
        let node = self.node_of(&attempt);
        attempt.state = AttemptState::Refused;
        attempt.ended_at = Some(self.now);
        attempt.late = node.is_none();
        self.event(EventKind::AttemptRefused {
            node: attempt.node.clone(),
            attempt_id: id,
            detail: detail.to_owned(),
        });
        self.close_attempt(attempt);
        let Some(ix) = node else { return };
        if self.cancelling() {
            return self.end_cancelled(ix, "it was refused before it started");
        }
        let again = match &self.state.plan.node(ix).action {
            NodeKind::Job(job) => job.retry.on.contains(&category),
            _ => false,
        };
        let refused = failure(NodeState::Failed, NodeReason::Refused, detail.to_owned());
        self.failed_attempt(ix, refused, again);
    }

    fn close_attempt(&mut self, attempt: AttemptRow) {
        self.record.attempts.remove(&attempt.id);
        self.record.past_attempts.push(attempt);
    }

    pub(super) fn attempt_result(&mut self, result: &ExecutionResult) {
        if result.operation_id != self.state.operation.id {
            return;
        }
        let Some(mut attempt) = self.state.attempts.remove(&result.attempt_id) else {
            return;
        };
        let node = self.node_of(&attempt);
        attempt.state = AttemptState::Ended;
        attempt.started_at = result.started_at.or(attempt.started_at);
        attempt.ended_at = Some(self.now);
        attempt.result = Some(result.clone());
        attempt.late = node.is_none();
        self.event(EventKind::AttemptEnded {
            node: attempt.node.clone(),
            attempt_id: attempt.id,
            status: result.status,
            category: result.exit_summary.category,
            reason: result.reason,
            message: result.exit_summary.message.clone(),
            late: attempt.late,
        });
        self.close_attempt(attempt);
        if let Some(ix) = node {
            self.settle_result(ix, result);
        }
    }

    fn settle_result(&mut self, ix: NodeIx, result: &ExecutionResult) {
        let plan = std::sync::Arc::clone(&self.state.plan);
        let NodeKind::Job(job) = &plan.node(ix).action else {
            return;
        };
        if self.cancelling() {
            return self.settle_cancelled(ix, result);
        }
        if may_still_run(result) {
            return self.still_running(ix, result);
        }
        if job.output_contract != contracts::OutputContract::default() {
            self.change(ix, |row| row.state = NodeState::Verifying);
        }
        self.keep(ix, result);
        match judge(job, &self.target_ids(job), result) {
            Verdict::Succeeded => self.end(ix, NodeState::Succeeded, None, None),
            Verdict::Failed { failure, again } => self.failed_attempt(ix, failure, again),
            Verdict::Unresolved { reason, message } => self.unresolved(ix, reason, message),
        }
    }

    /// Keeps what the attempt yielded with its node.
    fn keep(&mut self, ix: NodeIx, result: &ExecutionResult) {
        self.change(ix, |row| {
            row.exit = Some(result.exit_summary.clone());
            row.outputs.clone_from(&result.outputs);
            row.artifacts.clone_from(&result.artifacts);
            row.evidence.clone_from(&result.evidence);
        });
    }

    pub(super) fn unresolved(&mut self, ix: NodeIx, reason: NodeReason, message: String) {
        self.change(ix, |row| {
            row.state = NodeState::Unresolved;
            row.reason = Some(reason);
            row.message = Some(message);
            row.wait = None;
        });
    }

    /// The runner could not see to it that what the job began on a target has ended: nobody may say that it has.
    fn still_running(&mut self, ix: NodeIx, result: &ExecutionResult) {
        self.keep(ix, result);
        let reason = match result.reason {
            Some(contracts::ExitReason::Timeout) => NodeReason::Timeout,
            Some(contracts::ExitReason::LostRunner) => NodeReason::LostRunner,
            _ => NodeReason::Person,
        };
        let message = format!(
            "{}; something of it may still run on a target",
            result.exit_summary.message
        );
        self.unresolved(ix, reason, message);
    }

    pub(super) fn cancelling(&self) -> bool {
        self.state.operation.progress.cancel.is_some()
    }

    /// A result after the cancel: the node is cancelled whatever the job came to by itself, but for a job
    /// that was lost on its way: it may still run.
    fn settle_cancelled(&mut self, ix: NodeIx, result: &ExecutionResult) {
        let lost = result.reason == Some(contracts::ExitReason::LostRunner);
        if lost && started(result) != JobStarted::No {
            let message = result.exit_summary.message.clone();
            return self.unresolved(ix, NodeReason::LostRunner, message);
        }
        if may_still_run(result) {
            return self.still_running(ix, result);
        }
        self.keep(ix, result);
        let word = match result.status {
            contracts::ExecutionStatus::Cancelled => return self.end_cancelled(ix, &result.exit_summary.message),
            contracts::ExecutionStatus::Succeeded => "succeeded",
            contracts::ExecutionStatus::Failed => "failed",
            contracts::ExecutionStatus::TimedOut => "timed out",
        };
        self.end_cancelled(
            ix,
            &format!("{word} by itself after the cancel: {}", result.exit_summary.message),
        );
    }

    pub(super) fn end_cancelled(&mut self, ix: NodeIx, message: &str) {
        let reason = Some(NodeReason::OperationCancelled);
        self.end(ix, NodeState::Cancelled, reason, Some(message.to_owned()));
    }

    /// Another attempt after a while, if that is allowed and any are left; otherwise it has failed.
    fn failed_attempt(&mut self, ix: NodeIx, failure: Failure, again: bool) {
        let plan = std::sync::Arc::clone(&self.state.plan);
        let made = self.state.cells[ix].row.attempts;
        if let NodeKind::Job(job) = &plan.node(ix).action
            && again
            && made < job.retry.max_attempts
            && !self.state.winding_down()
        {
            let at = self.now + self.backoff(&job.retry, made);
            return self.change(ix, |row| {
                row.state = NodeState::Waiting;
                row.reason = Some(NodeReason::Backoff);
                row.message = Some(failure.message.clone());
                row.wait = Some(NodeWait::Retry { at, failure });
            });
        }
        self.fail(ix, failure);
    }
}

/// The job was ended, and the runner does not know whether its processes on the targets were: the output
/// `remote_processes` reads `unknown`.
fn may_still_run(result: &ExecutionResult) -> bool {
    let told = result
        .outputs
        .as_ref()
        .and_then(|outputs| outputs.get("remote_processes"));
    result.status != contracts::ExecutionStatus::Succeeded && told.is_some_and(|word| word == "unknown")
}
