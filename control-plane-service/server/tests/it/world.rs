//! The service on a database of its own beside scripted peers.

use std::sync::Arc;
use std::time::Duration;

use api_kit::OpenApiRouter;
use chrono::{TimeDelta, Utc};
use client_kit::ClientError;
use control_plane_api::{
    ControlPlane, CreateOperation, Decision, DecisionRequest, GateView, Intervention, InterventionRequest,
    ListEventsQuery, ListNodeRunsQuery, NodeRun, Operation, OperationEvent, OperationState, Overlap, PageQuery,
};
use control_plane_plan::Plan;
use control_plane_server::planner::ReadyPlan;
use control_plane_server::{Config, DATABASE, Deps, MIGRATOR, PlanningSide, Service, build_with};
use database::testing::TestDatabase;
use identity::{Minter, PrivateKey, Role, RotatingToken, ServiceTokens, TrustStore, TrustedKey, Vouch};
use kernel::id::{OperationId, OrganizationId};
use runtime_embedded::EmbeddedRuntime;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::catalog::Catalog;
use crate::execution::Execution;
use crate::plans::MemoryPlanner;

/// How long a condition may take before the test gives up on it; nothing is timed by it.
const PATIENCE: Duration = Duration::from_secs(60);

/// One process of the service.
pub struct Process {
    shutdown: CancellationToken,
    serving: JoinHandle<()>,
    running: Option<JoinHandle<()>>,
}

pub struct World {
    pub database: TestDatabase,
    pub catalog: Catalog,
    pub execution: Execution,
    pub planner: Arc<MemoryPlanner>,
    pub organization: OrganizationId,
    pub base: String,
    key: PrivateKey,
    pub proof_key: PrivateKey,
    peers: (String, String),
    process: Option<Process>,
    pub document: Option<utoipa::openapi::OpenApi>,
}

struct ProofKey(PrivateKey);

impl control_plane_proof::Signer for ProofKey {
    fn public_key(&self) -> [u8; 32] {
        self.0.public_key().to_bytes()
    }

    fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

async fn serve(router: axum::Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    base
}

impl World {
    /// Everything runs.
    pub async fn start() -> Self {
        let mut world = Self::without_process().await;
        world.run(true).await;
        world
    }

    /// The database and the peers; no process of the service yet.
    pub async fn without_process() -> Self {
        let database = TestDatabase::create(DATABASE, &MIGRATOR).await;
        let (catalog, execution) = (Catalog::default(), Execution::default());
        let peers = (serve(catalog.router()).await, serve(execution.router()).await);
        Self {
            database,
            catalog,
            execution,
            planner: Arc::default(),
            organization: OrganizationId::new_v7(),
            base: String::new(),
            key: PrivateKey::generate(),
            proof_key: PrivateKey::generate(),
            peers,
            process: None,
            document: None,
        }
    }

    fn service(&self) -> Service {
        let tokens = Arc::new(ServiceTokens::new(self.minter(), "control-plane"));
        let client = |base: &str| client_kit::Client::new(base, Some(tokens.clone())).unwrap();
        let deps = Deps {
            trust: TrustStore::new([TrustedKey::new(self.key.public_key(), [Vouch::Issuer])]),
            runtime: Arc::new(EmbeddedRuntime::default()),
            catalog: client(&self.peers.0),
            execution: client(&self.peers.1),
            signer: Arc::new(ProofKey(self.proof_key.clone())),
        };
        let planning = PlanningSide {
            planner: self.planner.clone(),
            routes: OpenApiRouter::new(),
            rules: Vec::new(),
            workers: Vec::new(),
        };
        build_with(&Config::new(self.database.urls().clone()), deps, planning).unwrap()
    }

    /// Starts a process: its API, and its runtime and workers if asked to.
    pub async fn run(&mut self, with_workers: bool) {
        let service = self.service();
        let router = service.router();
        self.document = Some(service.openapi().clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        self.base = format!("http://{}", listener.local_addr().unwrap());
        let shutdown = CancellationToken::new();
        let stop = shutdown.clone();
        let serving = tokio::spawn(async move { api_kit::serve(listener, router, stop).await.unwrap() });
        let running = with_workers.then(|| tokio::spawn(service.run(shutdown.clone())));
        self.process = Some(Process {
            shutdown,
            serving,
            running,
        });
    }

    /// The process is gone without a word: nothing is finished, nothing is told.
    pub async fn kill(&mut self) {
        let process = self.process.take().unwrap();
        process.serving.abort();
        if let Some(running) = process.running {
            running.abort();
            let _ = running.await;
        }
        let _ = process.serving.await;
    }

    /// The process ends in order.
    pub async fn stop(&mut self) {
        let process = self.process.take().unwrap();
        process.shutdown.cancel();
        if let Some(running) = process.running {
            running.await.unwrap();
        }
        process.serving.await.unwrap();
    }

    pub fn minter(&self) -> Minter {
        Minter::new(self.key.clone(), "test")
    }

    pub fn client(&self, subject: &str, roles: &[Role]) -> ControlPlane {
        let token = self
            .minter()
            .mint(
                subject,
                self.organization,
                roles.to_vec(),
                TimeDelta::minutes(30),
                Utc::now(),
            )
            .unwrap();
        let tokens = Arc::new(RotatingToken::new(token));
        ControlPlane::new(client_kit::Client::new(&self.base, Some(tokens)).unwrap())
    }

    pub fn ada(&self) -> ControlPlane {
        self.client("person:ada", &[Role::Operator])
    }

    pub fn bob(&self) -> ControlPlane {
        self.client("person:bob", &[Role::Approver])
    }

    pub fn create(ready: &ReadyPlan) -> CreateOperation {
        CreateOperation {
            plan_id: Some(ready.plan_id),
            expected_digest: Some(ready.document.digest()),
            plan: None,
            on_overlap: Overlap::Queue,
            reason: String::new(),
            labels: Default::default(),
        }
    }

    /// Starts an operation of `plan`.
    pub async fn begin(&self, plan: Plan) -> OperationId {
        let ready = self.planner.keep(plan);
        let key = Uuid::now_v7().to_string();
        let operation = self.ada().create_operation(&Self::create(&ready), &key).await.unwrap();
        operation.summary.id
    }

    pub async fn operation(&self, id: OperationId) -> Operation {
        self.ada().operation(id).await.unwrap()
    }

    /// Waits until the operation is as asked.
    pub async fn until(&self, id: OperationId, rule: &str, condition: impl Fn(&Operation) -> bool) -> Operation {
        let seen = std::sync::Mutex::new(None);
        let reached = async {
            loop {
                let operation = self.operation(id).await;
                if condition(&operation) {
                    return operation;
                }
                *seen.lock().unwrap() = Some(operation);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, reached).await {
            Ok(operation) => operation,
            Err(_) => panic!("not reached: {rule}; last seen {:#?}", seen.lock().unwrap()),
        }
    }

    pub async fn until_state(&self, id: OperationId, state: OperationState) -> Operation {
        self.until(id, state.as_str(), |operation| operation.summary.state == state)
            .await
    }

    /// Waits until something else is so.
    pub async fn until_so(&self, rule: &str, condition: impl Fn() -> bool) {
        let reached = async {
            while !condition() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        assert!(
            tokio::time::timeout(PATIENCE, reached).await.is_ok(),
            "not reached: {rule}"
        );
    }

    pub async fn node_runs(&self, id: OperationId) -> Vec<NodeRun> {
        self.ada()
            .node_runs(id, &ListNodeRunsQuery::default())
            .await
            .unwrap()
            .items
    }

    pub async fn events(&self, id: OperationId) -> Vec<OperationEvent> {
        let query = ListEventsQuery {
            limit: Some(1_000),
            ..ListEventsQuery::default()
        };
        self.ada().events(id, &query).await.unwrap().items
    }

    pub async fn open_gate(&self, id: OperationId) -> GateView {
        self.until(id, "a gate is open", |operation| {
            operation
                .waiting_for
                .iter()
                .any(|wait| matches!(wait, control_plane_api::WaitingFor::Gate { .. }))
        })
        .await;
        let gates = self.bob().gates(id, &PageQuery::default()).await.unwrap().items;
        gates.into_iter().find(|gate| gate.may_decide).unwrap()
    }

    pub async fn decide(
        &self,
        who: &ControlPlane,
        id: OperationId,
        gate: &GateView,
        decision: Decision,
    ) -> Result<GateView, ClientError> {
        let request = DecisionRequest {
            decision,
            covers_digest: gate.covers_digest,
            comment: String::new(),
        };
        who.decide(id, gate.gate_id.unwrap(), &request).await
    }

    pub async fn intervene(&self, id: OperationId, intervention: Intervention) -> Result<Operation, ClientError> {
        let request = InterventionRequest {
            intervention,
            reason: "because".to_owned(),
            expected_version: None,
        };
        self.ada()
            .intervene(id, &request)
            .await
            .map(|outcome| outcome.operation)
    }

    /// What must hold of every operation at any time.
    pub async fn invariants(&self) {
        let rows = self.database.open_superuser();
        let client = rows.hot().get().await.unwrap();
        let broken = "SELECT o.id::text FROM operations o WHERE o.last_event <> (SELECT count(*) FROM operation_events e \
            WHERE e.operation_id = o.id) OR (o.ended_at IS NOT NULL AND EXISTS (SELECT 1 FROM claims c WHERE c.operation_id = o.id))";
        let broken = client.query(broken, &[]).await.unwrap();
        assert!(broken.is_empty(), "events have no gap and no claim outlives its run");
        let conflicting = "SELECT a.uid::text FROM claims a JOIN claims b ON a.uid = b.uid AND a.request_id < b.request_id \
            WHERE a.held AND b.held AND (a.mode = 'exclusive' OR b.mode = 'exclusive')";
        assert!(
            client.query(conflicting, &[]).await.unwrap().is_empty(),
            "no two hold one resource"
        );
    }
}
