//! A scripted execution-plane: takes attempts, ends them as told, and gives results until they are
//! acknowledged, twice and out of order when asked to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use chrono::Utc;
use contracts::{
    EvidenceRef, EvidenceResult, EvidenceType, ExecutionResult, ExecutionStatus, ExitCategory, ExitReason, ExitSummary,
    JobSpec, JobStarted, LogRef,
};
use execution_plane_api::{
    AttemptBatch, AttemptBatchOutcome, AttemptOutcome, AttemptState, ResultsPullRequest, ResultsPullResponse, Running,
    RunningAttempt, RunningQuery, SubmissionOutcome,
};
use kernel::Sha256Digest;
use kernel::id::AttemptId;
use serde_json::json;
use tokio::sync::Notify;
use uuid::Uuid;

#[derive(Default)]
pub struct Facts {
    pub down: bool,
    /// Nodes (by plan node id) whose attempts wait until they are let go.
    pub held: BTreeSet<String>,
    /// Nodes whose attempts fail, with the message.
    pub failing: BTreeMap<String, String>,
    /// Nodes whose runner is lost, and nobody knows whether the job began.
    pub lost: BTreeSet<String>,
    /// Attempts that a runner has begun.
    pub running: BTreeMap<AttemptId, RunningAttempt>,
    pub attempts: BTreeMap<AttemptId, JobSpec>,
    /// How often each attempt was submitted.
    pub submissions: BTreeMap<AttemptId, u64>,
    pub calls: u64,
    pub cancels: u64,
    pub unacknowledged: BTreeMap<AttemptId, ExecutionResult>,
    /// Every result is given once more after its acknowledgement, and pages come in reverse.
    pub repeats: bool,
    repeated: BTreeSet<AttemptId>,
    ended: BTreeSet<AttemptId>,
}

#[derive(Clone, Default)]
pub struct Execution {
    facts: Arc<Mutex<Facts>>,
    news: Arc<Notify>,
}

impl Execution {
    pub fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap()
    }

    pub fn router(&self) -> Router {
        Router::new()
            .route("/v1/attempt-batches", post(submit))
            .route("/v1/attempts/{attempt_id}/cancel", post(cancel))
            .route("/v1/results/pull", post(pull))
            .with_state(self.clone())
    }

    /// Lets the held attempts of a node go on.
    pub fn let_go(&self, node: &str) {
        let mut facts = self.facts();
        facts.held.remove(node);
        let specs: Vec<JobSpec> = facts
            .attempts
            .values()
            .filter(|spec| spec.plan_node_id == node)
            .cloned()
            .collect();
        for spec in specs {
            facts.end(&spec, None);
        }
        drop(facts);
        self.news.notify_waiters();
    }

    /// A runner begins the attempts of a node.
    pub fn begin(&self, node: &str, runner: &str) {
        let mut facts = self.facts();
        let specs: Vec<JobSpec> = facts
            .attempts
            .values()
            .filter(|spec| spec.plan_node_id == node)
            .cloned()
            .collect();
        for spec in specs {
            let attempt = RunningAttempt {
                attempt_id: spec.attempt_id,
                operation_id: spec.operation_id,
                started_at: Utc::now(),
                runner: runner.to_owned(),
            };
            facts.running.insert(spec.attempt_id, attempt);
        }
        drop(facts);
        self.news.notify_waiters();
    }

    /// How many attempts of a node were ever taken.
    pub fn attempts_of(&self, node: &str) -> usize {
        self.facts()
            .attempts
            .values()
            .filter(|spec| spec.plan_node_id == node)
            .count()
    }
}

impl Facts {
    fn end(&mut self, spec: &JobSpec, cancelled: Option<ExitReason>) {
        if !self.ended.insert(spec.attempt_id) {
            return;
        }
        let failing = self.failing.get(&spec.plan_node_id).cloned();
        let mut result = result(spec, cancelled, failing);
        if self.lost.contains(&spec.plan_node_id) {
            result.status = ExecutionStatus::Failed;
            result.exit_summary.category = ExitCategory::InfrastructureError;
            result.exit_summary.message = "the runner was lost".to_owned();
            result.reason = Some(ExitReason::LostRunner);
            result.job_started = Some(JobStarted::Unknown);
            result.evidence.clear();
        }
        self.unacknowledged.insert(spec.attempt_id, result);
    }
}

pub fn result(spec: &JobSpec, cancelled: Option<ExitReason>, failing: Option<String>) -> ExecutionResult {
    let (status, category) = match (cancelled, &failing) {
        (Some(_), _) => (ExecutionStatus::Cancelled, ExitCategory::Unknown),
        (None, Some(_)) => (ExecutionStatus::Failed, ExitCategory::Unknown),
        (None, None) => (ExecutionStatus::Succeeded, ExitCategory::Success),
    };
    let targets = &spec.target.resources;
    let wanted = spec
        .output_contract
        .evidence
        .iter()
        .flat_map(|name| targets.iter().map(move |target| (name, target)));
    let evidence = wanted.map(|(name, target)| EvidenceRef {
        id: Uuid::now_v7(),
        evidence_type: EvidenceType::ApiCheck,
        capability: "web.http".parse().unwrap(),
        result: EvidenceResult::Passed,
        source_ref: "s3://logs/1".to_owned(),
        observed_at: Utc::now(),
        name: Some(name.clone()),
        resource_id: Some(target.resource_id.clone()),
        attempt_id: Some(spec.attempt_id),
        sha256: Some(Sha256Digest::of(b"log")),
    });
    ExecutionResult {
        operation_id: spec.operation_id,
        plan_node_id: spec.plan_node_id.clone(),
        attempt_id: spec.attempt_id,
        status,
        started_at: Some(Utc::now()),
        finished_at: Utc::now(),
        exit_summary: ExitSummary {
            code: i32::from(status != ExecutionStatus::Succeeded),
            category,
            message: failing.clone().unwrap_or_default(),
        },
        artifacts: Vec::new(),
        evidence: if failing.is_none() {
            evidence.collect()
        } else {
            Vec::new()
        },
        raw_logs: vec![LogRef {
            id: Uuid::now_v7(),
            uri: "s3://logs/1".to_owned(),
            sha256: Sha256Digest::of(b"log"),
            size_bytes: 3,
            lines: 1,
        }],
        job_started: Some(JobStarted::Yes),
        reason: cancelled,
        outputs: None,
    }
}

fn unavailable() -> Response {
    let problem = json!({"title": "Not available", "status": 503, "code": "unavailable"});
    let kind = [("content-type", "application/problem+json")];
    (StatusCode::SERVICE_UNAVAILABLE, kind, problem.to_string()).into_response()
}

async fn submit(state: State<Execution>, batch: Json<AttemptBatch>) -> Response {
    let mut facts = state.facts();
    if facts.down {
        return unavailable();
    }
    facts.calls += 1;
    let mut outcomes = Vec::new();
    for spec in &batch.attempts {
        *facts.submissions.entry(spec.attempt_id).or_default() += 1;
        let known = facts.attempts.insert(spec.attempt_id, spec.clone()).is_some();
        if !facts.held.contains(&spec.plan_node_id) {
            facts.end(spec, None);
        }
        outcomes.push(SubmissionOutcome {
            attempt_id: Some(spec.attempt_id),
            outcome: if known {
                AttemptOutcome::Replayed
            } else {
                AttemptOutcome::Accepted
            },
            state: Some(AttemptState::Queued),
            problem: None,
        });
    }
    drop(facts);
    state.news.notify_waiters();
    Json(AttemptBatchOutcome { outcomes }).into_response()
}

async fn cancel(state: State<Execution>, attempt: Path<AttemptId>) -> Response {
    let mut facts = state.facts();
    if facts.down {
        return unavailable();
    }
    facts.cancels += 1;
    let Some(spec) = facts.attempts.get(&attempt).cloned() else {
        let problem = json!({"title": "Not found", "status": 404, "code": "not_found"});
        let kind = [("content-type", "application/problem+json")];
        return (StatusCode::NOT_FOUND, kind, problem.to_string()).into_response();
    };
    facts.end(&spec, Some(ExitReason::Person));
    drop(facts);
    state.news.notify_waiters();
    Json(attempt_view(&spec)).into_response()
}

fn attempt_view(spec: &JobSpec) -> serde_json::Value {
    json!({
        "attempt_id": spec.attempt_id, "operation_id": spec.operation_id, "plan_node_id": spec.plan_node_id,
        "job_type": spec.job_type, "environment": "demo", "state": "cancelling", "version": 1, "runner_id": null,
        "queued_at": Utc::now(), "leased_at": null, "started_at": null, "finished_at": null,
        "cancel_requested_at": Utc::now(), "reason": null, "epoch": 0, "deadline_at": null, "isolation_used": null,
        "job_started": null, "waiting_for": null, "output": {"last_sequence": 0, "bytes": 0, "complete": false},
        "spec": spec, "result": null,
    })
}

impl Facts {
    fn page(&mut self, request: &ResultsPullRequest) -> Vec<ExecutionResult> {
        for id in &request.ack {
            let again = self.repeats && self.repeated.insert(*id);
            if !again {
                self.unacknowledged.remove(id);
            }
        }
        let mut page: Vec<ExecutionResult> = self
            .unacknowledged
            .values()
            .take(request.limit as usize)
            .cloned()
            .collect();
        if self.repeats {
            page.reverse();
        }
        page
    }

    fn running(&self, query: &RunningQuery) -> Running {
        let new = self.running.values().filter(|attempt| {
            !query.known.contains(&attempt.attempt_id) && query.after.is_none_or(|after| attempt.started_at > after)
        });
        let live = new.filter(|attempt| !self.ended.contains(&attempt.attempt_id));
        Running {
            as_of: Utc::now(),
            attempts: live.cloned().collect(),
            more: false,
        }
    }
}

async fn pull(state: State<Execution>, request: Json<ResultsPullRequest>) -> Response {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(request.wait_seconds.into());
    let mut request = request.0;
    loop {
        let news = state.news.notified();
        let (results, running) = {
            let mut facts = state.facts();
            if facts.down {
                return unavailable();
            }
            let running = request.running.as_ref().map(|query| facts.running(query));
            (facts.page(&request), running)
        };
        request.ack.clear();
        let news_of = running.as_ref().is_some_and(|running| !running.attempts.is_empty());
        if !results.is_empty() || news_of || tokio::time::timeout_at(deadline, news).await.is_err() {
            return Json(ResultsPullResponse { results, running }).into_response();
        }
    }
}
