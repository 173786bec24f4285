//! A client that goes on asking while something is down.

use std::future::Future;
use std::time::{Duration, Instant};

use client_kit::ClientError;
use control_plane_api::{
    CreateOperation, Decision, DecisionRequest, GateState, Intervention, InterventionRequest, ListNodeRunsQuery,
    NodeRunState, Operation, OperationState, PlanRequest, Resolution, WaitingFor,
};
use e2e::{Deployment, Scenario};
use kernel::id::OperationId;
use serde_json::json;

/// A bound against hanging, not a measure.
pub const PATIENCE: Duration = Duration::from_secs(120);
pub const PAUSE: Duration = Duration::from_millis(30);

/// Asks again for as long as there is no answer; every call here carries an id of its own or changes nothing.
pub async fn answered<T, F: Future<Output = Result<T, ClientError>>>(what: &str, ask: impl Fn() -> F) -> T {
    match answer(what, ask).await {
        Ok(answer) => answer,
        Err(error) => panic!("{what}: {error:?}"),
    }
}

/// The same; a refusal is an answer, too.
pub async fn answer<T, F: Future<Output = Result<T, ClientError>>>(
    what: &str,
    ask: impl Fn() -> F,
) -> Result<T, ClientError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match ask().await {
            Err(error) if error.is_transient() => {
                assert!(Instant::now() < deadline, "{what}: {error:?}");
                tokio::time::sleep(PAUSE).await;
            }
            answer => return answer,
        }
    }
}

/// Asks until `found` finds what it looks for.
pub async fn until<T>(what: &str, mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found().await {
            return found;
        }
        assert!(Instant::now() < deadline, "waited too long: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// The clients of a deployment, for a story that runs beside its restarts.
#[derive(Clone)]
pub struct Teller {
    pub control: control_plane_api::ControlPlane,
    /// Control-plane, asked by somebody who may decide gates.
    pub approver: control_plane_api::ControlPlane,
    pub catalog: resource_catalog_api::Client,
    pub execution: execution_plane_api::ExecutionPlane,
}

/// A request to plan `main` of a pack for `mark`.
pub fn plan_of(pack: &str, mark: &str) -> PlanRequest {
    PlanRequest {
        pack: pack.to_owned(),
        pack_version: None,
        template: "main".into(),
        environment: "test".into(),
        parameters: json!({"mark": mark}).as_object().cloned().unwrap_or_default(),
    }
}

impl Teller {
    pub fn of(deployment: &Deployment) -> Self {
        Self {
            control: deployment.control.clone(),
            approver: deployment.control_as("person:bob", &["approver", "viewer"]),
            catalog: deployment.catalog.clone(),
            execution: deployment.execution.clone(),
        }
    }

    pub async fn publish(&self, scenario: &Scenario) -> control_plane_api::PackView {
        let published = answered("publish", || {
            self.control.push_pack(scenario.archive().into(), &scenario.pack)
        });
        published.await.body
    }

    /// Starts the scenario with `mark` as its parameter, once.
    pub async fn start(&self, pack: &str, mark: &str) -> OperationId {
        let create = CreateOperation {
            plan_id: None,
            expected_digest: None,
            plan: Some(plan_of(pack, mark)),
            on_overlap: Default::default(),
            reason: mark.to_owned(),
            labels: Default::default(),
        };
        let key = format!("start-{pack}-{mark}");
        answered("start", || self.control.create_operation(&create, &key))
            .await
            .summary
            .id
    }

    pub async fn operation(&self, id: OperationId) -> Operation {
        answered("operation", || self.control.operation(id)).await
    }

    /// Changes the course of an operation, once.
    pub async fn intervene(&self, id: OperationId, intervention: Intervention) {
        let request = InterventionRequest {
            intervention,
            reason: "the story goes so".into(),
            expected_version: None,
        };
        match answer("intervene", || self.control.intervene(id, &request)).await {
            Ok(_) => {}
            // It was taken and its answer lost: the second one meets an operation that it was applied to.
            Err(error) if error.status() == Some(409) => {}
            Err(error) => panic!("intervene: {error:?}"),
        }
    }

    /// Approves the gate that stands open, once.
    pub async fn approve(&self, id: OperationId) {
        let all = control_plane_api::PageQuery::default();
        let gate = until("a gate opens", async || {
            let gates = answered("gates", || self.approver.gates(id, &all)).await;
            gates.items.into_iter().find(|gate| gate.state == GateState::Open)
        })
        .await;
        let decision = DecisionRequest {
            decision: Decision::Approve,
            covers_digest: gate.covers_digest,
            comment: String::new(),
        };
        let gate = gate.gate_id.expect("an open gate has an id");
        match answer("approve", || self.approver.decide(id, gate, &decision)).await {
            Ok(_) => {}
            Err(error) if error.status() == Some(409) => {}
            Err(error) => panic!("approve: {error:?}"),
        }
    }

    /// Waits until the operation has ended, or stands because an outcome is not known or an operator is asked.
    pub async fn settled(&self, id: OperationId) -> Operation {
        let stands = |operation: &Operation| {
            let asked = |waiting: &WaitingFor| matches!(waiting, WaitingFor::Intervention { .. });
            let state = operation.summary.state;
            state.is_end() || state == OperationState::Unresolved || operation.waiting_for.iter().any(asked)
        };
        self.standing(id, stands).await
    }

    /// Waits until the operation stands as wanted.
    pub async fn standing(&self, id: OperationId, wanted: impl Fn(&Operation) -> bool) -> Operation {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let operation = self.operation(id).await;
            if wanted(&operation) {
                return operation;
            }
            assert!(
                Instant::now() < deadline,
                "operation {id} does not come to where it should: {operation:#?}"
            );
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Settles every outcome that is not known as failed, so that the operation ends.
    pub async fn end(&self, id: OperationId) -> Operation {
        for _ in 0..5 {
            let operation = self.settled(id).await;
            if operation.summary.state.is_end() {
                return operation;
            }
            for node_id in self.nodes_in(id, NodeRunState::Unresolved).await {
                let resolve = Intervention::Resolve {
                    node_id,
                    resolution: Resolution::Failed,
                    evidence: Vec::new(),
                };
                self.intervene(id, resolve).await;
            }
        }
        panic!("operation {id} cannot be brought to an end")
    }

    /// The nodes of an operation that are in this state.
    pub async fn nodes_in(&self, id: OperationId, state: NodeRunState) -> Vec<String> {
        let query = ListNodeRunsQuery::default();
        let runs = answered("node runs", || self.control.node_runs(id, &query)).await;
        let runs = runs.items.into_iter().filter(|run| run.state == state);
        runs.map(|run| run.node_id).collect()
    }
}
