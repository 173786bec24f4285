//! A whole service on a database of its own, a control-plane and runners that speak to it.

use std::net::SocketAddr;
use std::sync::Arc;

use blobs_directory::DirectoryBlobs;
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use client_kit::{Client, ClientError, Retries};
use contracts::{ExecutionResult, ExecutionStatus, ExitCategory, ExitSummary, Isolation, JobSpec, JobType};
use database::testing::TestDatabase;
use database::{Database, ServiceRole};
use execution_plane_api::{
    AttemptOutcome, ExecutionPlane, FinishRequest, FinishResponse, HeldAttempt, Lease, LeasePullRequest,
    LeasePullResponse, LeaseRenewRequest, LeaseRenewResponse, OutputChunk, OutputStream, OutputUploadRequest,
    ResultsPullRequest, RunnerClient, RunnerRegistration, RunnerSession, StartPhase, StartedRequest, SubmissionOutcome,
};
use execution_plane_server::{Config, DATABASE, Dependencies, MIGRATOR, build};
use identity::{BearerToken, Minter, PrivateKey, Role, RotatingToken, ServiceTokens, TrustStore, TrustedKey, Vouch};
use kernel::id::{AttemptId, OperationId, OrganizationId};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Lost only by hand: no lease runs out while a test runs.
pub fn patient() -> Config {
    let mut config = Config::default();
    config.lease.lease = TimeDelta::hours(1);
    config.lease.grace = TimeDelta::zero();
    config.lease.comeback = TimeDelta::zero();
    config
}

/// A running service and those who may call it.
pub struct World {
    pub database: Arc<TestDatabase>,
    pub organization: OrganizationId,
    pub address: SocketAddr,
    blobs: Arc<tempfile::TempDir>,
    config: Config,
    issuer: PrivateKey,
    control_plane: PrivateKey,
    runner_key: PrivateKey,
    shutdown: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl World {
    pub async fn start() -> Self {
        Self::start_with(patient()).await
    }

    pub async fn start_with(config: Config) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut world = Self {
            database: Arc::new(TestDatabase::create(DATABASE, &MIGRATOR).await),
            organization: OrganizationId::new_v7(),
            address: listener.local_addr().unwrap(),
            blobs: Arc::new(tempfile::tempdir().unwrap()),
            config,
            issuer: PrivateKey::generate(),
            control_plane: PrivateKey::generate(),
            runner_key: PrivateKey::generate(),
            shutdown: CancellationToken::new(),
            tasks: Vec::new(),
        };
        world.serve(listener).await;
        world
    }

    /// Another process on the same database and blobs.
    pub async fn twin(&self) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut twin = Self {
            database: self.database.clone(),
            address: listener.local_addr().unwrap(),
            blobs: self.blobs.clone(),
            issuer: self.issuer.clone(),
            control_plane: self.control_plane.clone(),
            runner_key: self.runner_key.clone(),
            shutdown: CancellationToken::new(),
            tasks: Vec::new(),
            organization: self.organization,
            config: self.config.clone(),
        };
        twin.serve(listener).await;
        twin
    }

    async fn serve(&mut self, listener: TcpListener) {
        let trust = TrustStore::new([
            TrustedKey::new(self.issuer.public_key(), [Vouch::Issuer]),
            TrustedKey::new(
                self.control_plane.public_key(),
                [Vouch::Service("control-plane".into())],
            ),
        ]);
        let dependencies = Dependencies {
            api: self.database.open(ServiceRole::Api),
            worker: self.database.open(ServiceRole::Worker),
            blobs: Arc::new(DirectoryBlobs::open(self.blobs.path()).await.unwrap()),
            trust,
            runner_key: self.runner_key.clone(),
        };
        let service = build(self.config.clone(), dependencies).await.unwrap();
        let (router, shutdown) = (service.router(), self.shutdown.clone());
        self.tasks.push(tokio::spawn(async move {
            api_kit::serve(listener, router, shutdown).await.unwrap();
        }));
        let shutdown = self.shutdown.clone();
        self.tasks
            .push(tokio::spawn(async move { service.run(shutdown).await }));
    }

    /// Ends the service like a kill: whatever runs is dropped where it stands.
    pub async fn kill(&mut self) {
        for task in self.tasks.drain(..) {
            task.abort();
            let _ = task.await;
        }
        // Connections that were accepted are tasks of their own.
        self.shutdown.cancel();
    }

    /// Starts it again at the same address, on the same database and blobs.
    pub async fn start_again(&mut self) {
        self.shutdown = CancellationToken::new();
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.serve(listener).await;
    }

    pub fn client(&self, token: BearerToken) -> Client {
        let tokens = Arc::new(RotatingToken::new(token));
        Client::new(&format!("http://{}", self.address), Some(tokens))
            .unwrap()
            .with_retries(Retries::NONE)
    }

    pub fn token(&self, subject: &str, organization: OrganizationId, roles: &[Role]) -> BearerToken {
        self.minter()
            .mint(subject, organization, roles.to_vec(), TimeDelta::hours(1), Utc::now())
            .unwrap()
    }

    pub fn minter(&self) -> Minter {
        Minter::new(self.issuer.clone(), "test")
    }

    /// control-plane, acting for the world's organization.
    pub fn plane(&self) -> ExecutionPlane {
        self.plane_for(self.organization)
    }

    pub fn plane_for(&self, organization: OrganizationId) -> ExecutionPlane {
        let minter = Minter::new(self.control_plane.clone(), "control-plane");
        let tokens = Arc::new(ServiceTokens::new(minter, "control-plane"));
        let client = Client::new(&format!("http://{}", self.address), Some(tokens)).unwrap();
        ExecutionPlane::new(client.with_retries(Retries::NONE).acting_for(organization))
    }

    /// A person with one role.
    pub fn person(&self, role: Role) -> ExecutionPlane {
        ExecutionPlane::new(self.client(self.token("person:ada", self.organization, &[role])))
    }

    pub async fn runner(&self, name: &str) -> TestRunner {
        self.runner_of(self.organization, registration(name)).await
    }

    pub async fn runner_of(&self, organization: OrganizationId, registration: RunnerRegistration) -> TestRunner {
        let subject = format!("enrolment:{}", registration.name);
        let tokens = Arc::new(RotatingToken::new(self.token(&subject, organization, &[Role::Runner])));
        let client = Client::new(&format!("http://{}", self.address), Some(tokens.clone())).unwrap();
        let client = RunnerClient::new(client.with_retries(Retries::NONE));
        let session = client.open_session(&registration).await.unwrap();
        tokens.replace(BearerToken::new(session.token.clone()));
        TestRunner {
            client,
            session,
            registration,
        }
    }

    /// The database without row-level security, to look at and to bend time.
    pub fn superuser(&self) -> Database {
        self.database.open_superuser()
    }

    /// Makes every live lease run out an hour ago.
    pub async fn leases_run_out(&self) {
        let client = self.superuser().hot().get().await.unwrap();
        let out = "UPDATE leases SET deadline_at = clock_timestamp() - interval '1 hour'";
        client.execute(out, &[]).await.unwrap();
    }

    /// Submits and expects each to be accepted.
    pub async fn submit(&self, specs: &[JobSpec]) {
        for outcome in self.plane().submit(specs.to_vec()).await.unwrap().outcomes {
            assert_eq!(outcome.outcome, AttemptOutcome::Accepted, "{outcome:?}");
        }
    }

    pub async fn submit_one(&self, spec: Value) -> SubmissionOutcome {
        let client = self.client(self.token("service:control-plane", self.organization, &[Role::Service]));
        let batch = json!({"attempts": [spec]});
        let outcome: execution_plane_api::AttemptBatchOutcome =
            client.post("/v1/attempt-batches").body(&batch).json().await.unwrap();
        outcome.outcomes.into_iter().next().unwrap()
    }

    /// The next results, waiting for one.
    pub async fn results(&self, ack: Vec<AttemptId>) -> Vec<ExecutionResult> {
        let request = ResultsPullRequest {
            ack,
            limit: 1000,
            wait_seconds: 30,
            running: None,
        };
        self.plane().pull_results(&request).await.unwrap().results
    }
}

pub fn registration(name: &str) -> RunnerRegistration {
    RunnerRegistration {
        name: name.into(),
        pools: vec!["default".into()],
        labels: [("zone".to_owned(), "a".to_owned())].into(),
        job_types: vec![JobType::Verification, JobType::Ssh, JobType::Ansible],
        isolation: vec![Isolation::Process, Isolation::Sandbox],
        capacity: 100,
        environments: Vec::new(),
        version: None,
    }
}

/// A runner that does what a test tells it.
pub struct TestRunner {
    pub client: RunnerClient,
    pub session: RunnerSession,
    pub registration: RunnerRegistration,
}

impl TestRunner {
    pub async fn pull(&self, free_slots: u32, wait_seconds: u32) -> Vec<Lease> {
        self.pull_holding(free_slots, wait_seconds, &[]).await.leases
    }

    pub async fn pull_holding(&self, free_slots: u32, wait_seconds: u32, held: &[HeldAttempt]) -> LeasePullResponse {
        let request = LeasePullRequest {
            free_slots,
            held: held.to_vec(),
            wait_seconds,
        };
        self.client.pull(&request).await.unwrap()
    }

    /// The one lease that is there.
    pub async fn one(&self) -> Lease {
        let mut leases = self.pull(1, 30).await;
        assert_eq!(leases.len(), 1);
        leases.remove(0)
    }

    pub async fn renew(&self, held: &[HeldAttempt], wait_seconds: u32) -> LeaseRenewResponse {
        let request = LeaseRenewRequest {
            held: held.to_vec(),
            wait_seconds,
        };
        let patience = std::time::Duration::from_secs(30);
        self.client.renew(&request, patience).await.unwrap()
    }

    pub async fn running(&self, lease: &Lease) -> Result<execution_plane_api::StartedResponse, ClientError> {
        self.client
            .started(lease.attempt_id, &started(lease.epoch, StartPhase::Running))
            .await
    }

    pub async fn output(&self, lease: &Lease, chunks: Vec<OutputChunk>) -> Result<u64, ClientError> {
        let request = OutputUploadRequest {
            epoch: lease.epoch,
            chunks,
        };
        let acknowledged = self.client.output(lease.attempt_id, &request).await?;
        Ok(acknowledged.acknowledged_sequence)
    }

    pub async fn finish(&self, lease: &Lease, last_output_sequence: u64) -> Result<FinishResponse, ClientError> {
        self.client
            .finish(lease.attempt_id, &finish(lease, last_output_sequence))
            .await
    }
}

pub fn held(lease: &Lease) -> HeldAttempt {
    HeldAttempt {
        attempt_id: lease.attempt_id,
        epoch: lease.epoch,
        cancelling: false,
    }
}

pub fn started(epoch: u64, phase: StartPhase) -> StartedRequest {
    StartedRequest {
        epoch,
        phase,
        at: moment(),
        isolation_used: Isolation::Sandbox,
    }
}

pub fn finish(lease: &Lease, last_output_sequence: u64) -> FinishRequest {
    FinishRequest {
        epoch: lease.epoch,
        last_output_sequence,
        result: succeeded(&lease.job),
    }
}

pub fn succeeded(spec: &JobSpec) -> ExecutionResult {
    ExecutionResult {
        operation_id: spec.operation_id,
        plan_node_id: spec.plan_node_id.clone(),
        attempt_id: spec.attempt_id,
        status: ExecutionStatus::Succeeded,
        started_at: Some(moment()),
        finished_at: moment(),
        exit_summary: ExitSummary {
            code: 0,
            category: ExitCategory::Success,
            message: "done".into(),
        },
        artifacts: Vec::new(),
        evidence: Vec::new(),
        raw_logs: Vec::new(),
        job_started: None,
        reason: None,
        outputs: None,
    }
}

/// A runner's clock is a claim; here it stands still.
pub fn moment() -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000, 0).unwrap()
}

/// The lines as chunks, one each, from sequence 1 on.
pub fn chunks(lines: &[&str]) -> Vec<OutputChunk> {
    let mut offset = 0;
    let chunk = |(index, line): (usize, &&str)| {
        let chunk = OutputChunk {
            sequence: index as u64 + 1,
            byte_offset: offset,
            stream: OutputStream::Stdout,
            at: moment(),
            data: Bytes::copy_from_slice(line.as_bytes()),
        };
        offset += line.len() as u64;
        chunk
    };
    lines.iter().enumerate().map(chunk).collect()
}

/// A verification that needs no login: one value is compared.
pub fn noop() -> JobSpec {
    serde_json::from_value(noop_json()).unwrap()
}

pub fn noop_json() -> Value {
    json!({
        "operation_id": OperationId::new_v7(),
        "plan_node_id": "check",
        "attempt_id": AttemptId::new_v7(),
        "job_type": "verification",
        "runner": {"name": "default", "isolation": "process"},
        "target": {"environment": "demo", "resources": [{"resource_id": "node/web-1", "resource_type": "compute.node"}]},
        "inputs": {"parameters": {"checks": [
            {"name": "noop", "capability": "platform.noop", "type": "value_check", "value": 1, "equals": 1}]}},
        "output_contract": {"evidence": ["noop"]},
        "controls": {"timeout_seconds": 60}
    })
}

pub fn code(error: &ClientError) -> (u16, &str) {
    let problem = error.problem().unwrap_or_else(|| panic!("not a problem: {error}"));
    (problem.status, &problem.code)
}
