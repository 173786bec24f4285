//! Small stories that together pass every place where a process can be made to die.

use control_plane_api::{Intervention, Operation, OperationState, WaitingFor};
use e2e::{Role, Scenario, takes_a_host};
use execution_plane_api::{AttemptListQuery, CommandPolicyBody, RunnerListQuery};
use kernel::id::{OperationId, PlanId};
use resource_catalog_api::ApplyCapabilityDefinition;

use crate::stage::Stage;
use crate::teller::{answer, answered, plan_of, until};

/// Which story.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Story {
    /// Definitions, resources, packs, previews, policies: what is written beside operations.
    Written,
    /// A rollout that succeeds.
    Straight,
    /// A job with content and an artifact, a gate, a job that takes the artifact and fails, a retry.
    Course,
    /// A job that is cancelled while it runs.
    Cancelled,
    /// A job whose runner dies under it.
    Lost,
    /// An operation that is cancelled while execution-plane is away.
    Withdrawn,
    /// A timer of an operation runs out that no process has in its memory.
    Reminded,
    /// The copy of the catalog is ahead of it, as after a restored backup, and is made anew.
    Rebuilt,
}

impl Story {
    /// The quick ones first: a place is told by the first story that passes it.
    pub const ALL: [Self; 8] = [
        Self::Written,
        Self::Straight,
        Self::Cancelled,
        Self::Rebuilt,
        Self::Course,
        Self::Lost,
        Self::Withdrawn,
        Self::Reminded,
    ];
}

/// What the platform answered with yes, to be held against what it knows after a kill.
#[derive(Debug, Default)]
pub struct Promised {
    pub operation: Option<OperationId>,
    pub pack: Option<(String, kernel::Sha256Digest)>,
    pub plan: Option<(PlanId, Option<kernel::Sha256Digest>)>,
    pub policy: Option<String>,
    pub description: Option<String>,
    pub annotation: Option<String>,
}

/// A template that takes one host for itself.
fn on_a_host(head: &str, nodes: &str) -> String {
    format!("{head}{}{nodes}", takes_a_host("exclusive"))
}

const ENDLESS: &str = r#"nodes:
  - id: wait
    title: Wait
    kind: job
    job:
      type: ssh
      targets: host
      parameters:
        script: echo "$PLATFORM_ATTEMPT" >> /srv/${parameters.mark}; echo begun; sleep 600
      secrets: [{secret_ref: "vault://ssh/hosts"}]
      timeout_seconds: 900
      idempotent: false
"#;

/// A template whose only job never ends by itself.
pub fn endless() -> Scenario {
    let head = "name: main\ntitle: Wait for ever\ndescription: A job that ends only when it is cancelled.\n";
    Scenario::new("endless", &on_a_host(head, ENDLESS))
}

/// A job that never ends by itself, and may run for so many seconds.
pub fn limited(name: &str, seconds: u32) -> Scenario {
    let nodes = ENDLESS.replace("timeout_seconds: 900", &format!("timeout_seconds: {seconds}"));
    let head = "name: main\ntitle: Wait too long\ndescription: A job that its limit ends.\n";
    Scenario::new(name, &on_a_host(head, &nodes))
}

/// A job that goes on until it is told on the host, and leaves a line there when it has ended by itself.
pub fn until_told(name: &str) -> Scenario {
    let script =
        "; while [ ! -e /srv/${parameters.mark}-go ]; do sleep 0.1; done; echo end >> /srv/${parameters.mark}-end";
    let nodes = ENDLESS.replace("; echo begun; sleep 600", script);
    let head = "name: main\ntitle: Wait for a word\ndescription: A job that ends when it is told.\n";
    Scenario::new(name, &on_a_host(head, &nodes))
}

const fn course_nodes() -> &'static str {
    r#"nodes:
  - id: make
    title: Make something
    kind: job
    job:
      type: ssh
      targets: host
      parameters:
        script_file: make.sh
        arguments: ["${parameters.mark}"]
      output: {artifacts: [made.txt]}
      secrets: [{secret_ref: "vault://ssh/hosts"}]
      timeout_seconds: 60
      idempotent: false
  - id: allow
    title: Allow its use
    kind: gate
    needs: [make]
    gate: {role: approver, requester_excluded: true, message: Go on}
  - id: use
    title: Use it
    kind: job
    needs: [allow]
    job:
      type: ssh
      targets: host
      parameters:
        script: echo "$PLATFORM_ATTEMPT" >> /srv/${parameters.mark}-use; test -e /srv/${parameters.mark}-ready
      artifacts: ["artifact://operation/made.txt"]
      secrets: [{secret_ref: "vault://ssh/hosts"}]
      timeout_seconds: 60
      idempotent: false
  - id: check
    title: Check the mark
    kind: job
    needs: [use]
    job:
      type: verification
      targets: host
      parameters:
        checks:
          - {name: marked, type: command_check, target: "*", capability: site.marked, command: "test -s /srv/${parameters.mark}", expect: {exit_code: 0}}
      secrets: [{secret_ref: "vault://ssh/hosts"}]
      output: {capabilities: [site.marked], evidence: [marked]}
      timeout_seconds: 60
      retry: retry/default
      idempotent: true
  - id: publish
    title: Tell the catalog
    kind: resource_update
    for_each: {slot: host}
    needs: [check]
    update:
      observed_state_patch: {mark: "${parameters.mark}"}
      capabilities: {add: [site.marked]}
      evidence_from: [check]
"#
}

/// Content, an artifact, a gate, a job that succeeds only once the host is ready for it.
fn course(mark: &str) -> Scenario {
    let nodes = course_nodes();
    let head = "name: main\ntitle: A course\ndescription: A gate and a second try.\n";
    let script = format!(
        "#!/bin/sh\n# {mark}\necho \"$PLATFORM_ATTEMPT\" >> \"/srv/$1\"\necho made > \"$PLATFORM_ARTIFACTS/made.txt\"\n"
    );
    Scenario::with_content(
        &format!("course-{mark}"),
        &on_a_host(head, nodes),
        &[("make.sh", &script)],
    )
}

/// A node behind a gate.
pub fn gated() -> Scenario {
    let nodes = r#"nodes:
  - id: allow
    title: Allow it
    kind: gate
    gate: {role: approver, requester_excluded: true, message: Go on}
  - id: mark
    title: Mark it
    kind: job
    needs: [allow]
    job:
      type: ssh
      targets: host
      parameters:
        script: echo "$PLATFORM_ATTEMPT" >> /srv/${parameters.mark}
      secrets: [{secret_ref: "vault://ssh/hosts"}]
      timeout_seconds: 60
      idempotent: false
"#;
    let head = "name: main\ntitle: Behind a gate\ndescription: Nothing runs unless it is allowed.\n";
    Scenario::new("gated", &on_a_host(head, nodes))
}

/// A job that leaves an artifact, and one that leaves evidence.
pub fn with_artifact() -> Scenario {
    let whole = course_nodes();
    let from = whole.find("  - id: allow").expect("the gate");
    let to = whole.find("  - id: check").expect("the check");
    let nodes = format!("{}{}", &whole[..from], &whole[to..]).replace("needs: [use]", "needs: [make]");
    let head = "name: main\ntitle: Leave something\ndescription: An artifact, a log and evidence.\n";
    let script = "#!/bin/sh\necho \"$PLATFORM_ATTEMPT\" >> \"/srv/$1\"\n\
                  seq 1 2000\nseq 1 5000 > \"$PLATFORM_ARTIFACTS/made.txt\"\n";
    Scenario::with_content("with-artifact", &on_a_host(head, &nodes), &[("make.sh", script)])
}

impl Stage {
    /// Tells a story to where its operation stands, if it has one.
    pub async fn tell(&self, story: Story, mark: &str) -> Promised {
        match story {
            Story::Written => self.write(mark).await,
            Story::Straight => {
                let id = self.teller.start("one-host", mark).await;
                self.teller.settled(id).await;
                Promised::of(id)
            }
            Story::Course => self.course(mark).await,
            Story::Cancelled => {
                let id = self.teller.start("endless", mark).await;
                self.running(id, mark).await;
                self.teller.intervene(id, Intervention::Cancel).await;
                self.teller.settled(id).await;
                Promised::of(id)
            }
            Story::Lost => {
                let id = self.teller.start("endless", mark).await;
                self.running(id, mark).await;
                self.deployment.kill(Role::Runner).await;
                self.teller.settled(id).await;
                self.launch(Role::Runner);
                self.runner_is_online().await;
                Promised::of(id)
            }
            Story::Withdrawn => self.withdrawn(mark).await,
            Story::Reminded => {
                let id = self.teller.start("endless", mark).await;
                self.running(id, mark).await;
                let due = "UPDATE wakeups SET due_at = now()";
                self.deployment.rows("control_plane", due).await;
                until("the operation is asked again", async || {
                    let due = "SELECT count(*) FROM wakeups WHERE due_at <= now()";
                    (self.deployment.number("control_plane", due).await == 0).then_some(())
                })
                .await;
                self.teller.intervene(id, Intervention::Cancel).await;
                self.teller.settled(id).await;
                Promised::of(id)
            }
            Story::Rebuilt => {
                let lost = "UPDATE projection_cursors SET revision = revision + 1000000 \
                    WHERE organization_id IN (SELECT organization_id FROM packs)";
                self.deployment.rows("control_plane", lost).await;
                self.catalog_is_whole().await;
                Promised::default()
            }
        }
    }

    async fn write(&self, mark: &str) -> Promised {
        let teller = &self.teller;
        let description = mark.to_owned();
        let definition = ApplyCapabilityDefinition {
            parent: None,
            description: description.clone(),
            attribute_schema: None,
        };
        let name = "site.written".parse().expect("a name");
        answered("define", || {
            teller.catalog.apply_capability_definition(&name, &definition, None)
        })
        .await;
        self.annotate(mark).await;
        let pack = Scenario::with_content(
            &format!("written-{mark}"),
            &on_a_host("name: main\ntitle: T\ndescription: Only published.\n", ENDLESS),
            &[("mark.txt", mark)],
        );
        let published = teller.publish(&pack).await;
        let request = plan_of("one-host", mark);
        let plan = answered("preview", || teller.control.preview(&request, None)).await;
        self.newcomer().await;
        let policy = format!("policy-{mark}");
        let body = CommandPolicyBody::default();
        answered("policy", || teller.execution.put_command_policy(&policy, None, &body)).await;
        for draining in [true, false] {
            self.drain(draining).await;
        }
        Promised {
            operation: None,
            pack: Some((published.name, published.digest)),
            plan: Some((plan.id, plan.digest)),
            policy: Some(policy),
            description: Some(description),
            annotation: Some(mark.to_owned()),
        }
    }

    /// An organization that was never here asks for a plan: its catalog is followed from now on.
    async fn newcomer(&self) {
        let organization = Some(uuid::Uuid::now_v7());
        let control = self
            .deployment
            .control_of("person:eve", &["operator", "viewer"], organization);
        let request = plan_of("one-host", "none");
        let refused = answer("preview", || control.preview(&request, None)).await;
        refused.expect_err("it has no such pack");
    }

    async fn annotate(&self, mark: &str) {
        let id = "node/web-1".parse().expect("an id");
        let resource = answered("read", || self.teller.catalog.resource(&id)).await;
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
        answered("apply", || self.teller.catalog.apply_resource(&id, &apply, None)).await;
    }

    async fn drain(&self, draining: bool) {
        until("the runner is set to drain", async || {
            let query = RunnerListQuery::default();
            let runners = answered("runners", || self.teller.execution.runners(&query)).await;
            let runner = runners.items.first()?.clone();
            let drained = answer("drain", || {
                self.teller.execution.drain(runner.runner_id, runner.version, draining)
            });
            match drained.await {
                Ok(_) => Some(()),
                // The runner was heard of meanwhile, or the answer to this was lost: at its new version again.
                Err(error) if matches!(error.status(), Some(409 | 412)) => None,
                Err(error) => panic!("drain: {error:?}"),
            }
        })
        .await;
    }

    /// Waits until work can go to the runner.
    pub async fn runner_is_online(&self) {
        until("the runner is online", async || {
            let query = RunnerListQuery::default();
            let runners = answered("runners", || self.teller.execution.runners(&query)).await;
            let online =
                |runner: &execution_plane_api::Runner| runner.status == execution_plane_api::RunnerStatus::Online;
            runners.items.iter().any(online).then_some(())
        })
        .await;
    }

    async fn course(&self, mark: &str) -> Promised {
        let scenario = course(mark);
        let published = self.teller.publish(&scenario).await;
        let id = self.teller.start(&scenario.pack, mark).await;
        let promised = Promised {
            pack: Some((published.name, published.digest)),
            ..Promised::of(id)
        };
        let at_gate = |operation: &Operation| {
            let gate = |waiting: &WaitingFor| matches!(waiting, WaitingFor::Gate { .. });
            let state = operation.summary.state;
            state.is_end() || state == OperationState::Unresolved || operation.waiting_for.iter().any(gate)
        };
        let operation = self.teller.standing(id, at_gate).await;
        if operation.summary.state.is_end() || operation.summary.state == OperationState::Unresolved {
            return promised;
        }
        self.teller.approve(id).await;
        let operation = self.teller.settled(id).await;
        if operation.summary.state == OperationState::Failed && self.world.lines(0, &format!("{mark}-use")) > 0 {
            self.world.write(0, &format!("{mark}-ready"), "");
            let retry = Intervention::Retry {
                nodes: Vec::new(),
                set: Default::default(),
            };
            self.teller.intervene(id, retry).await;
            self.teller.settled(id).await;
        }
        promised
    }

    /// Both the submission and the cancel are tried again when execution-plane is back. The cancel is the younger
    /// one, so it is nearly always the first to arrive; when it is not, the story is told once more.
    async fn withdrawn(&self, mark: &str) -> Promised {
        for again in 0.. {
            self.deployment.kill(Role::ExecutionPlane).await;
            let id = self.teller.start("endless", &format!("{mark}-{again}")).await;
            let away = |operation: &Operation| {
                let tried = |waiting: &WaitingFor| matches!(waiting, WaitingFor::Dependency { tries: 5.., .. });
                operation.summary.state.is_end() || operation.waiting_for.iter().any(tried)
            };
            self.teller.standing(id, away).await;
            self.teller.intervene(id, Intervention::Cancel).await;
            self.launch(Role::ExecutionPlane);
            self.teller.end(id).await;
            let of_operation = AttemptListQuery {
                operation_id: Some(id),
                ..Default::default()
            };
            let attempts = answered("attempts", || self.teller.execution.attempts(&of_operation)).await;
            if attempts.items.is_empty() {
                return Promised::of(id);
            }
        }
        unreachable!("there is always a further time")
    }

    /// Waits until the job runs on the host, or will never run there.
    pub async fn running(&self, id: OperationId, mark: &str) {
        until("the job runs", async || {
            if self.world.lines(0, mark) > 0 {
                return Some(());
            }
            let state = self.teller.operation(id).await.summary.state;
            (state.is_end() || state == OperationState::Unresolved).then_some(())
        })
        .await;
    }
}

impl Promised {
    pub fn of(id: OperationId) -> Self {
        Self {
            operation: Some(id),
            ..Self::default()
        }
    }
}
