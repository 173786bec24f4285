//! Small stories over the API, told by a client that goes on asking while something is down.

use std::future::Future;
use std::time::{Duration, Instant};

use client_kit::ClientError;
use control_plane_api::{
    CreateOperation, Intervention, InterventionRequest, ListEventsQuery, ListNodeRunsQuery, NodeRunState, Operation,
    OperationState, PageQuery, PlanRequest, Resolution,
};
use e2e::{Deployment, Scenario, World};
use kernel::id::OperationId;
use resource_catalog_api::ApplyCapabilityDefinition;
use serde_json::json;

/// A bound against hanging, not a measure.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Asks again for as long as there is no answer; every call here carries an id of its own or changes nothing.
pub async fn answered<T, F: Future<Output = Result<T, ClientError>>>(what: &str, ask: impl Fn() -> F) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) if error.is_transient() && Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(30)).await
            }
            Err(error) => panic!("{what}: {error:?}"),
        }
    }
}

/// The clients of a deployment, for a story that runs beside its restarts.
#[derive(Clone)]
pub struct Teller {
    pub control: control_plane_api::ControlPlane,
    pub catalog: resource_catalog_api::Client,
    pub execution: execution_plane_api::ExecutionPlane,
}

/// Which story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Story {
    /// A rollout that succeeds, after a change of definitions and resources.
    Straight,
    /// A job that is cancelled while it runs.
    Cancelled,
    /// A job whose runner dies under it.
    Lost,
}

impl Story {
    pub const ALL: [Self; 3] = [Self::Straight, Self::Cancelled, Self::Lost];
}

/// A template whose only job never ends by itself.
pub fn endless() -> Scenario {
    Scenario::new(
        "endless",
        r#"name: main
title: Wait for ever
description: A job that ends only when it is cancelled.
parameters:
  mark:
    description: The file.
    schema: {type: string, pattern: "^[a-z0-9-]+$"}
requirements:
  host:
    resource_type: compute.node
    count: {min: 1, max: 1}
    capabilities: [os.linux]
    connection: true
    claim: exclusive
nodes:
  - id: wait
    title: Wait
    kind: job
    job:
      type: ssh
      targets: host
      parameters:
        script: echo "$PLATFORM_ATTEMPT" >> /srv/${parameters.mark}; sleep 600
      secrets: [{secret_ref: "vault://ssh/hosts"}]
      timeout_seconds: 900
      idempotent: false
"#,
    )
}

impl Teller {
    pub fn of(deployment: &Deployment) -> Self {
        Self {
            control: deployment.control.clone(),
            catalog: deployment.catalog.clone(),
            execution: deployment.execution.clone(),
        }
    }

    pub async fn publish(&self, scenario: &Scenario) {
        answered("publish", || {
            self.control.push_pack(scenario.archive().into(), &scenario.pack)
        })
        .await;
    }

    /// Starts the scenario with `mark` as its parameter, once.
    pub async fn start(&self, pack: &str, mark: &str) -> OperationId {
        let plan = PlanRequest {
            pack: pack.to_owned(),
            pack_version: None,
            template: "main".into(),
            environment: "test".into(),
            parameters: json!({"mark": mark}).as_object().cloned().unwrap_or_default(),
        };
        let create = CreateOperation {
            plan_id: None,
            expected_digest: None,
            plan: Some(plan),
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

    /// Tells a story to its end and gives the operation as it then stands.
    pub async fn tell(&self, story: Story, mark: &str, world: &World) -> Operation {
        match story {
            Story::Straight => {
                let definition = ApplyCapabilityDefinition {
                    parent: None,
                    description: mark.to_owned(),
                    attribute_schema: None,
                };
                let name = "site.marked".parse().expect("a name");
                answered("define", || {
                    self.catalog.apply_capability_definition(&name, &definition, None)
                })
                .await;
                self.touch_resource(mark).await;
                let id = self.start("one-host", mark).await;
                self.settled(id).await
            }
            // Whoever tells this one kills the runner once the job is at work.
            Story::Lost => {
                let id = self.start("endless", mark).await;
                self.settled(id).await
            }
            Story::Cancelled => {
                let id = self.start("endless", mark).await;
                self.running(id, mark, world).await;
                let request = InterventionRequest {
                    intervention: Intervention::Cancel,
                    reason: "enough".into(),
                    expected_version: None,
                };
                let deadline = Instant::now() + PATIENCE;
                loop {
                    match self.control.intervene(id, &request).await {
                        Ok(_) => break,
                        // The cancel was taken and its answer lost: the second one meets an operation that is being cancelled.
                        Err(error) if error.status() == Some(409) => break,
                        Err(error) if error.is_transient() && Instant::now() < deadline => {
                            tokio::time::sleep(Duration::from_millis(30)).await
                        }
                        Err(error) => panic!("cancel: {error:?}"),
                    }
                }
                self.settled(id).await
            }
        }
    }

    async fn touch_resource(&self, mark: &str) {
        let id = "node/web-1".parse().expect("an id");
        let resource = answered("read", || self.catalog.resource(&id)).await;
        let mut annotations = resource.annotations.clone();
        annotations.insert("touched".into(), mark.to_owned());
        let apply = resource_catalog_api::ApplyResource {
            resource_type: resource.resource_type,
            environment: resource.environment,
            labels: resource.labels,
            annotations,
            lifecycle_status: None,
            desired_state: resource.desired_state,
            connection: resource.connection,
            edges: None,
        };
        answered("apply", || self.catalog.apply_resource(&id, &apply, None)).await;
    }

    /// Waits until the job runs on the host, or will never run there.
    async fn running(&self, id: OperationId, mark: &str, world: &World) {
        let deadline = Instant::now() + PATIENCE;
        while world.lines(0, mark) == 0 {
            let operation = answered("operation", || self.control.operation(id)).await;
            let state = operation.summary.state;
            if state.is_end() || state == OperationState::Unresolved {
                return;
            }
            assert!(Instant::now() < deadline, "operation {id} does not run: {operation:#?}");
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }

    /// Waits until the operation has ended, or stands because an outcome is not known or an operator is asked.
    pub async fn settled(&self, id: OperationId) -> Operation {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let operation = answered("operation", || self.control.operation(id)).await;
            let asked = operation
                .waiting_for
                .iter()
                .any(|w| matches!(w, control_plane_api::WaitingFor::Intervention { .. }));
            if operation.summary.state.is_end() || operation.summary.state == OperationState::Unresolved || asked {
                return operation;
            }
            assert!(
                Instant::now() < deadline,
                "operation {id} comes to no end: {operation:#?}"
            );
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }

    /// Settles every outcome that is not known as failed, so that the operation ends.
    pub async fn end(&self, id: OperationId) -> Operation {
        for _ in 0..5 {
            let operation = self.settled(id).await;
            if operation.summary.state.is_end() {
                return operation;
            }
            let runs = answered("node runs", || async {
                self.control.node_runs(id, &ListNodeRunsQuery::default()).await
            })
            .await;
            for run in runs.items.iter().filter(|run| run.state == NodeRunState::Unresolved) {
                let request = InterventionRequest {
                    intervention: Intervention::Resolve {
                        node_id: run.node_id.clone(),
                        resolution: Resolution::Failed,
                        evidence: Vec::new(),
                    },
                    reason: "looked at the host".into(),
                    expected_version: None,
                };
                answered("resolve", || self.control.intervene(id, &request)).await;
            }
        }
        panic!("operation {id} cannot be brought to an end")
    }

    /// What must hold whatever was killed: checked on the platform's own word and on the host.
    pub async fn check_invariants(&self, operation: &Operation, world: &World, mark: &str, story: Story) {
        let id = operation.summary.id;
        let lines = world.lines(0, mark);
        assert!(lines <= 1, "{mark}: ran {lines} times on the host");
        let state = operation.summary.state;
        match story {
            Story::Straight if state == OperationState::Succeeded => {
                assert_eq!(lines, 1, "{mark}: succeeded without having run")
            }
            Story::Cancelled | Story::Lost => assert_ne!(
                state,
                OperationState::Succeeded,
                "{mark}: a job without an end succeeded"
            ),
            Story::Straight => {}
        }
        self.events_are_gapless(id).await;
        let claims = answered("claims", || async { self.control.claims(&PageQuery::default()).await }).await;
        assert!(claims.items.is_empty(), "{mark}: claims outlive the run: {claims:#?}");
        let query = execution_plane_api::AttemptListQuery {
            operation_id: Some(id),
            ..Default::default()
        };
        let attempts = answered("attempts", || self.execution.attempts(&query)).await;
        let live: Vec<_> = attempts
            .items
            .iter()
            .filter(|attempt| !attempt.state.is_terminal())
            .collect();
        assert!(live.is_empty(), "{mark}: attempts live on: {live:#?}");
    }

    async fn events_are_gapless(&self, id: OperationId) {
        let mut query = ListEventsQuery {
            limit: Some(1000),
            ..Default::default()
        };
        let mut expected = 1;
        loop {
            let page = answered("events", || async { self.control.events(id, &query).await }).await;
            for event in &page.items {
                assert_eq!(event.sequence, expected, "a gap in the events of {id}");
                expected += 1;
            }
            query.cursor = page.next_cursor;
            if query.cursor.is_none() {
                return;
            }
        }
    }

    /// The catalog's change records: gapless versions, in order, and the projection catches up with them.
    pub async fn catalog_is_whole(&self) {
        let mut after = 0;
        let mut version = 0;
        loop {
            let query = resource_catalog_api::FeedQuery {
                after,
                limit: Some(1000),
                ..Default::default()
            };
            let page = answered("feed", || self.catalog.feed(&query)).await;
            for event in page
                .events
                .iter()
                .filter(|event| event.resource_id.as_str() == "node/web-1")
            {
                assert!(
                    event.version == version || event.version == version + 1,
                    "version {} after {version}",
                    event.version
                );
                version = event.version;
            }
            after = page.next_after;
            if after >= page.head {
                break;
            }
        }
        let resource = answered("read", || async {
            self.catalog.resource(&"node/web-1".parse().expect("an id")).await
        })
        .await;
        assert_eq!(
            resource.version, version,
            "the last change record is the resource's version"
        );
        let deadline = Instant::now() + PATIENCE;
        loop {
            let projections = answered("projections", || self.control.projections()).await;
            let parked: usize = projections.iter().map(|p| p.parked.len()).sum();
            assert_eq!(parked, 0, "{projections:#?}");
            if !projections.is_empty() && projections.iter().all(|p| p.revision >= after) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "the projection does not catch up: {projections:#?}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
