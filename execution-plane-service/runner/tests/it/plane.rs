//! A service of the runner protocol, in memory: only what a runner sees of one, with faults on demand.
//!
//! As at the real one, a lease belongs to the session that pulled it. Every call of a later session
//! about it is refused until a pull of that session has listed it; what that pull leaves out is lost.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use contracts::{ArtifactRef, ArtifactStorage, ExecutionResult, JobSpec, ProducedBy};
use execution_plane_api::{
    ArtifactUploadQuery, AttemptState, FinishRequest, FinishResponse, Lease, LeasePullRequest, LeasePullResponse,
    LeaseRenewRequest, LeaseRenewResponse, OutputAcknowledged, OutputChunk, OutputUploadRequest, RenewOutcome,
    RenewedLease, RunnerRegistration, RunnerSession, SessionRequest, StartedRequest, StartedResponse,
};
use kernel::id::{AttemptId, RunnerId};
use serde_json::json;
use tokio::sync::Notify;

/// A session before any that this service opens.
pub const EARLIER_SESSION: u64 = 1;

#[derive(Default)]
pub struct Record {
    pub epoch: u64,
    pub job: Option<JobSpec>,
    /// The session that has the lease; none before it is pulled.
    pub session: u64,
    lease: Option<Lease>,
    pub chunks: Vec<OutputChunk>,
    pub artifacts: BTreeMap<String, Vec<u8>>,
    pub result: Option<ExecutionResult>,
    pub started: bool,
    pub cancel: bool,
    pub gone: bool,
    pub renewals: u32,
    /// How often a finish of it was stored.
    pub finishes: u32,
    /// How often a call about it was refused because another session has the lease.
    pub fenced: u32,
}

impl Record {
    /// Leased by a session and not over yet.
    fn is_live(&self) -> bool {
        self.session > 0 && !self.gone && self.result.is_none()
    }
}

/// Ends that the service refuses, whatever is tried.
#[derive(Clone, Copy, Default)]
pub enum RefusedEnds {
    #[default]
    None,
    WithEvidence,
    All,
}

#[derive(Default)]
pub struct PlaneState {
    pub attempts: BTreeMap<AttemptId, Record>,
    queue: VecDeque<Lease>,
    pub registration: Option<RunnerRegistration>,
    pub sessions: u64,
    instance: Option<uuid::Uuid>,
    pub contents: BTreeMap<AttemptId, Vec<u8>>,
    pub lease_seconds: f64,
    pub token_seconds: f64,
    /// How many tokens were given.
    pub tokens: u32,
    /// Everything is refused with 503, as by a service that restarts.
    pub away: bool,
    /// So many output calls are stored and then answered with 503: the answer is lost.
    pub lose_output_answers: u32,
    pub lose_finish_answers: u32,
    /// While set, finishes are answered with 503 and counted, and nothing of them is stored.
    pub refuse_finishes: bool,
    pub refused_finishes: u32,
    /// While set, a finish is answered with 413 when its result has evidence, or any at all.
    pub refused_ends: RefusedEnds,
    /// So many tellings of a start are answered with 503.
    pub lost_starts: u32,
}

#[derive(Clone)]
pub struct Plane {
    state: Arc<Mutex<PlaneState>>,
    changed: Arc<Notify>,
    pub url: String,
}

type Answer<T> = Result<Json<T>, Response>;

fn problem(status: u16, code: &str, extra: serde_json::Value) -> Response {
    let mut body = json!({"type": "about:blank", "title": code, "status": status, "code": code});
    if let (Some(body), Some(extra)) = (body.as_object_mut(), extra.as_object()) {
        body.extend(extra.clone());
    }
    let kind = [(header::CONTENT_TYPE, "application/problem+json")];
    (StatusCode::from_u16(status).unwrap(), kind, body.to_string()).into_response()
}

impl Plane {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = PlaneState {
            lease_seconds: 30.0,
            token_seconds: 3600.0,
            ..PlaneState::default()
        };
        let plane = Self {
            state: Arc::new(Mutex::new(state)),
            changed: Arc::default(),
            url,
        };
        let router = axum::Router::new()
            .route("/v1/runner/sessions", post(session))
            .route("/v1/runner/leases/pull", post(pull))
            .route("/v1/runner/leases/renew", post(renew))
            .route("/v1/runner/attempts/{id}/started", post(started))
            .route("/v1/runner/attempts/{id}/output", post(output))
            .route("/v1/runner/attempts/{id}/artifacts/{name}", put(artifact))
            .route("/v1/runner/attempts/{id}/finish", post(finish))
            .route("/v1/runner/attempts/{id}/content", get(content))
            .route("/v1/runner/attempts/{id}/inputs/{name}", get(input))
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(plane.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        plane
    }

    pub fn state(&self) -> MutexGuard<'_, PlaneState> {
        self.state.lock().unwrap()
    }

    /// Changes something and wakes whoever waits.
    pub fn change(&self, change: impl FnOnce(&mut PlaneState)) {
        change(&mut self.state());
        self.changed.notify_waiters();
    }

    pub fn submit(&self, lease: Lease, content: Option<Vec<u8>>) {
        self.change(|state| {
            let record = Record {
                epoch: lease.epoch,
                job: Some(lease.job.clone()),
                ..Record::default()
            };
            state.attempts.insert(lease.attempt_id, record);
            if let Some(content) = content {
                state.contents.insert(lease.attempt_id, content);
            }
            state.queue.push_back(lease);
        });
    }

    /// Waits until `holds`.
    pub async fn until(&self, what: &str, holds: impl Fn(&PlaneState) -> bool) {
        let wait = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if holds(&self.state()) {
                    return;
                }
                changed.await;
            }
        };
        let patience = Duration::from_secs(90);
        tokio::time::timeout(patience, wait)
            .await
            .unwrap_or_else(|_| panic!("waited in vain for: {what}"));
    }

    pub async fn result(&self, id: AttemptId) -> ExecutionResult {
        self.until("the end of the attempt", |state| state.attempts[&id].result.is_some())
            .await;
        self.state().attempts[&id].result.clone().unwrap()
    }

    /// The whole output, checked for order and offsets.
    pub fn output(&self, id: AttemptId) -> String {
        let mut all = Vec::new();
        for (index, chunk) in self.state().attempts[&id].chunks.iter().enumerate() {
            assert_eq!(
                (chunk.sequence, chunk.byte_offset),
                (index as u64 + 1, all.len() as u64)
            );
            all.extend_from_slice(&chunk.data);
        }
        String::from_utf8_lossy(&all).into_owned()
    }

    fn record<T>(
        &self,
        headers: &HeaderMap,
        id: AttemptId,
        epoch: u64,
        then: impl FnOnce(&mut Record) -> Answer<T>,
    ) -> Answer<T> {
        let mut state = self.state();
        if state.away {
            return Err(problem(503, "unavailable", json!({})));
        }
        let record = state
            .attempts
            .get_mut(&id)
            .ok_or_else(|| problem(404, "not_found", json!({})))?;
        if record.gone || record.epoch != epoch {
            return Err(problem(409, "stale_epoch", json!({})));
        }
        if record.is_live() && record.session != session_of(headers) {
            record.fenced += 1;
            drop(state);
            self.changed.notify_waiters();
            return Err(problem(409, "stale_epoch", json!({})));
        }
        let answer = then(record);
        drop(state);
        self.changed.notify_waiters();
        answer
    }

    fn refuse_while_away(&self) -> Result<(), Response> {
        if self.state().away {
            Err(problem(503, "unavailable", json!({})))
        } else {
            Ok(())
        }
    }
}

/// The session whose token the call carries.
fn session_of(headers: &HeaderMap) -> u64 {
    let token = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let number = token.and_then(|token| token.strip_prefix("Bearer token-"));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

async fn session(State(plane): State<Plane>, Json(request): Json<SessionRequest>) -> Answer<RunnerSession> {
    plane.refuse_while_away()?;
    plane.change(|state| {
        if state.instance != Some(request.instance) {
            state.sessions = state.sessions.max(EARLIER_SESSION) + 1;
            state.instance = Some(request.instance);
        }
        state.registration = Some(request.registration);
        state.tokens += 1;
    });
    let state = plane.state();
    Ok(Json(RunnerSession {
        runner_id: RunnerId::new_v7(),
        session: state.sessions,
        token: format!("token-{}", state.sessions),
        // Another time than the runner's: only what counts from now on can be relied on.
        expires_at: chrono::Utc::now() - chrono::TimeDelta::hours(1),
        valid_seconds: Some(state.token_seconds),
        lease_seconds: state.lease_seconds,
        grace_seconds: 5.0,
    }))
}

impl PlaneState {
    /// Compares what a runner of `session` holds with what is recorded: takes over, loses, finds again.
    fn compare(&mut self, session: u64, request: &LeasePullRequest) -> (Vec<Lease>, Vec<AttemptId>) {
        let held = |id: &AttemptId, record: &Record| {
            let listed = |held: &execution_plane_api::HeldAttempt| held.attempt_id == *id && held.epoch == record.epoch;
            request.held.iter().any(listed)
        };
        let mut undelivered = Vec::new();
        for (id, record) in self.attempts.iter_mut().filter(|(_, record)| record.is_live()) {
            match (record.session < session, held(id, record)) {
                (true, true) => record.session = session,
                (true, false) => record.gone = true,
                (false, false) if !record.started => undelivered.extend(record.lease.clone()),
                (false, _) => {}
            }
        }
        let in_vain = |id: &AttemptId| self.attempts.get(id).is_none_or(|record| !record.is_live());
        let gone = request
            .held
            .iter()
            .map(|held| held.attempt_id)
            .filter(in_vain)
            .collect();
        (undelivered, gone)
    }

    fn claim(&mut self, session: u64, free_slots: u32) -> Vec<Lease> {
        let free = (free_slots as usize).min(self.queue.len());
        let mut leases: Vec<Lease> = self.queue.drain(..free).collect();
        for lease in &mut leases {
            lease.deadline_in_seconds = self.lease_seconds;
            let record = self.attempts.get_mut(&lease.attempt_id).unwrap();
            record.session = session;
            record.lease = Some(lease.clone());
        }
        leases
    }
}

async fn pull(
    State(plane): State<Plane>,
    headers: HeaderMap,
    Json(request): Json<LeasePullRequest>,
) -> Answer<LeasePullResponse> {
    plane.refuse_while_away()?;
    let session = session_of(&headers);
    if session != plane.state().sessions {
        return Err(problem(401, "session_superseded", json!({})));
    }
    let (leases, gone) = plane.state().compare(session, &request);
    plane.changed.notify_waiters();
    if !leases.is_empty() || !gone.is_empty() {
        return Ok(Json(LeasePullResponse { leases, gone }));
    }
    let take = || plane.state().claim(session, request.free_slots);
    let wait = async {
        loop {
            let changed = plane.changed.notified();
            let leases = take();
            if !leases.is_empty() {
                return leases;
            }
            changed.await;
        }
    };
    let wait = tokio::time::timeout(Duration::from_secs(request.wait_seconds.into()), wait).await;
    plane.refuse_while_away()?;
    Ok(Json(LeasePullResponse {
        leases: wait.unwrap_or_default(),
        gone: Vec::new(),
    }))
}

async fn renew(
    State(plane): State<Plane>,
    headers: HeaderMap,
    Json(request): Json<LeaseRenewRequest>,
) -> Answer<LeaseRenewResponse> {
    plane.refuse_while_away()?;
    let session = session_of(&headers);
    let look = || {
        let state = plane.state();
        let outcome = |held: &execution_plane_api::HeldAttempt| match state.attempts.get(&held.attempt_id) {
            Some(record) if record.epoch == held.epoch && record.is_live() && record.session == session => {
                match record.cancel {
                    true => RenewOutcome::CancelRequested,
                    false => RenewOutcome::Ok,
                }
            }
            _ => RenewOutcome::Gone,
        };
        let news = request.held.iter().any(|held| match outcome(held) {
            RenewOutcome::Ok => false,
            RenewOutcome::CancelRequested => !held.cancelling,
            RenewOutcome::Gone => true,
        });
        let lease = |held: &execution_plane_api::HeldAttempt| RenewedLease {
            attempt_id: held.attempt_id,
            epoch: held.epoch,
            outcome: outcome(held),
            deadline_in_seconds: (outcome(held) != RenewOutcome::Gone).then_some(state.lease_seconds),
        };
        (news, request.held.iter().map(lease).collect::<Vec<_>>())
    };
    plane.change(|state| {
        for held in &request.held {
            if let Some(record) = state.attempts.get_mut(&held.attempt_id) {
                record.renewals += 1;
            }
        }
    });
    let wait = async {
        loop {
            let changed = plane.changed.notified();
            if look().0 {
                return;
            }
            changed.await;
        }
    };
    drop(tokio::time::timeout(Duration::from_secs(request.wait_seconds.into()), wait).await);
    plane.refuse_while_away()?;
    Ok(Json(LeaseRenewResponse { leases: look().1 }))
}

async fn started(
    State(plane): State<Plane>,
    headers: HeaderMap,
    Path(id): Path<AttemptId>,
    Json(request): Json<StartedRequest>,
) -> Answer<StartedResponse> {
    let lost = {
        let mut state = plane.state();
        let lost = state.lost_starts > 0;
        state.lost_starts = state.lost_starts.saturating_sub(1);
        lost
    };
    plane.record(&headers, id, request.epoch, |record| {
        if lost {
            return Err(problem(503, "unavailable", json!({})));
        }
        record.started = true;
        Ok(Json(StartedResponse {
            state: AttemptState::Running,
        }))
    })
}

async fn output(
    State(plane): State<Plane>,
    headers: HeaderMap,
    Path(id): Path<AttemptId>,
    Json(request): Json<OutputUploadRequest>,
) -> Answer<OutputAcknowledged> {
    let lose = {
        let mut state = plane.state();
        let lose = state.lose_output_answers > 0;
        state.lose_output_answers = state.lose_output_answers.saturating_sub(1);
        lose
    };
    plane.record(&headers, id, request.epoch, |record| {
        for chunk in request.chunks {
            let next = record.chunks.len() as u64 + 1;
            if chunk.sequence > next {
                return Err(problem(409, "output_gap", json!({"expected_sequence": next})));
            }
            if chunk.sequence == next {
                record.chunks.push(chunk);
            } else {
                assert_eq!(
                    record.chunks[chunk.sequence as usize - 1],
                    chunk,
                    "a resent chunk is the same"
                );
            }
        }
        if lose {
            return Err(problem(503, "unavailable", json!({})));
        }
        Ok(Json(OutputAcknowledged {
            acknowledged_sequence: record.chunks.len() as u64,
        }))
    })
}

async fn artifact(
    State(plane): State<Plane>,
    headers: HeaderMap,
    Path((id, name)): Path<(AttemptId, String)>,
    Query(query): Query<ArtifactUploadQuery>,
    body: Bytes,
) -> Answer<ArtifactRef> {
    assert_eq!(kernel::Sha256Digest::of(&body), query.sha256);
    plane.record(&headers, id, query.epoch, |record| {
        record.artifacts.insert(name.clone(), body.to_vec());
        let job = record.job.as_ref().unwrap();
        Ok(Json(ArtifactRef {
            id: uuid::Uuid::now_v7(),
            artifact_type: query.artifact_type,
            storage: ArtifactStorage::S3,
            uri: format!("s3://aiops-artifacts/operations/{}/{name}", job.operation_id),
            sensitivity: query.sensitivity,
            produced_by: ProducedBy {
                operation_id: job.operation_id,
                plan_node_id: job.plan_node_id.clone(),
            },
            name: Some(name),
            sha256: Some(query.sha256),
            size_bytes: Some(body.len() as u64),
            media_type: query.media_type,
        }))
    })
}

async fn finish(
    State(plane): State<Plane>,
    headers: HeaderMap,
    Path(id): Path<AttemptId>,
    Json(request): Json<FinishRequest>,
) -> Answer<FinishResponse> {
    let refused = match plane.state().refused_ends {
        RefusedEnds::None => false,
        RefusedEnds::WithEvidence => !request.result.evidence.is_empty(),
        RefusedEnds::All => true,
    };
    if refused {
        plane.change(|state| state.refused_finishes += 1);
        return Err(problem(413, "too_large", json!({})));
    }
    if plane.state().refuse_finishes {
        plane.change(|state| state.refused_finishes += 1);
        return Err(problem(503, "unavailable", json!({})));
    }
    let lose = {
        let mut state = plane.state();
        let lose = state.lose_finish_answers > 0;
        state.lose_finish_answers = state.lose_finish_answers.saturating_sub(1);
        lose
    };
    plane.record(&headers, id, request.epoch, |record| {
        if record.chunks.len() as u64 != request.last_output_sequence {
            let expected = record.chunks.len() as u64 + 1;
            return Err(problem(
                409,
                "output_incomplete",
                json!({"expected_sequence": expected}),
            ));
        }
        match &record.result {
            Some(first) => assert_eq!(*first, request.result, "a repeated finish is the same"),
            None => record.finishes += 1,
        }
        record.result = Some(request.result.clone());
        if lose {
            return Err(problem(503, "unavailable", json!({})));
        }
        Ok(Json(FinishResponse {
            state: AttemptState::Succeeded,
            result: request.result,
        }))
    })
}

async fn content(State(plane): State<Plane>, Path(id): Path<AttemptId>) -> Result<Vec<u8>, Response> {
    plane.refuse_while_away()?;
    plane
        .state()
        .contents
        .get(&id)
        .cloned()
        .ok_or_else(|| problem(404, "not_found", json!({})))
}

/// What an earlier node of the operation left under that name.
async fn input(State(plane): State<Plane>, Path((_, name)): Path<(AttemptId, String)>) -> Result<Vec<u8>, Response> {
    plane.refuse_while_away()?;
    Ok(name.into_bytes())
}
