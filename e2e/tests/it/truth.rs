//! What a reader sees is so in the same instant, and what was not allowed cannot run by any path.

use std::time::Instant;

use control_plane_api::{
    Decision, DecisionRequest, GateState, Intervention, InterventionRequest, ListNodeRunsQuery, NodeRunState,
    Operation, OperationState, PageQuery, WaitingFor,
};
use e2e::{Options, Role};
use execution_plane_api::{ArtifactListQuery, AttemptListQuery};
use kernel::Sha256Digest;
use kernel::id::OperationId;

use crate::stage::{Armed, Stage};
use crate::stories::{Story, gated, with_artifact};
use crate::teller::{PATIENCE, answered, until};

/// Everything of a succeeded operation, without waiting for anything.
async fn everything_can_be_read(stage: &Stage, id: OperationId) {
    let query = AttemptListQuery {
        operation_id: Some(id),
        ..Default::default()
    };
    let attempts = stage.teller.execution.attempts(&query).await.expect("attempts");
    assert_eq!(attempts.items.len(), 2);
    for summary in attempts.items {
        let id = summary.attempt_id;
        assert!(summary.state.is_terminal(), "{summary:#?}");
        let attempt = stage.teller.execution.attempt(id).await.expect("an attempt");
        let result = attempt.result.expect("its result");
        let output = stage.teller.execution.whole_output(id).await.expect("its output");
        for log in &result.raw_logs {
            assert_eq!(log.sha256, Sha256Digest::of(&output), "the log is whole");
        }
        let all = ArtifactListQuery::default();
        let artifacts = stage
            .teller
            .execution
            .artifacts(id, &all)
            .await
            .expect("its artifacts")
            .items;
        assert!(!artifacts.is_empty(), "both jobs leave something");
        for artifact in &artifacts {
            let name = artifact.name.as_deref().expect("a name");
            let bytes = stage.teller.execution.artifact(id, name).await.expect("its bytes");
            assert_eq!(artifact.sha256, Some(Sha256Digest::of(&bytes)), "{name} is whole");
        }
        for evidence in &result.evidence {
            let is_source = |artifact: &contracts::ArtifactRef| artifact.uri == evidence.source_ref;
            assert!(
                artifacts.iter().any(is_source),
                "the source of {evidence:?} can be read"
            );
        }
    }
    stage.is_proven(id, "at once").await;
    let runs = stage.teller.control.node_runs(id, &ListNodeRunsQuery::default()).await;
    let ended = |state: NodeRunState| state == NodeRunState::Succeeded;
    assert!(runs.expect("node runs").items.iter().all(|run| ended(run.state)));
    let claims = stage
        .teller
        .control
        .claims(&PageQuery::default())
        .await
        .expect("claims");
    assert!(claims.items.is_empty(), "claims end with the run");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_note_05_who_reads_succeeded_reads_logs_artifacts_evidence_and_proof_in_the_same_instant() {
    let stage = Stage::up(&Options::default()).await;
    let scenario = with_artifact();
    stage.teller.publish(&scenario).await;
    for index in 0..5 {
        let id = stage.teller.start(&scenario.pack, &format!("at-once-{index}")).await;
        let deadline = Instant::now() + PATIENCE;
        // Without a pause: what is looked for is the first moment.
        loop {
            let operation = stage.teller.operation(id).await;
            if operation.summary.state == OperationState::Succeeded {
                break;
            }
            assert!(!operation.summary.state.is_end(), "{operation:#?}");
            assert!(Instant::now() < deadline, "{operation:#?}");
        }
        everything_can_be_read(&stage, id).await;
    }
    stage.deployment.stop().await;
}

fn waits_for_claim(operation: &Operation) -> bool {
    let claim = |waiting: &WaitingFor| matches!(waiting, WaitingFor::Claim { .. });
    operation.waiting_for.iter().any(claim)
}

/// How many rows say that anything is held, waited for or left.
async fn left_over(stage: &Stage) -> i64 {
    let held = stage
        .deployment
        .number("control_plane", "SELECT count(*) FROM claims")
        .await;
    let kept = stage
        .deployment
        .number("resource_catalog", "SELECT count(*) FROM finalizers")
        .await;
    let leased = stage
        .deployment
        .number("execution_plane", "SELECT count(*) FROM leases")
        .await;
    held + kept + leased
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_note_24_cancelling_running_and_waiting_ones_frees_all_whichever_service_is_killed() {
    let stage = Stage::up(&Options::default()).await;
    for role in [Role::ControlPlane, Role::ExecutionPlane, Role::ResourceCatalog] {
        let mark = format!("free-{role:?}").to_lowercase();
        let holder = stage.teller.start("endless", &mark).await;
        stage.running(holder, &mark).await;
        let mut waiting = Vec::new();
        for index in 0..3 {
            let id = stage.teller.start("one-host", &format!("{mark}-{index}")).await;
            stage.teller.standing(id, waits_for_claim).await;
            waiting.push(id);
        }
        stage.deployment.kill(role).await;
        stage.launch(role);
        // One that waits goes first, one after the holder, one is let through.
        stage.teller.intervene(waiting[0], Intervention::Cancel).await;
        let first = stage.teller.settled(waiting[0]).await;
        assert_eq!(first.summary.state, OperationState::Cancelled, "{first:#?}");
        let still = stage.teller.operation(waiting[1]).await;
        assert!(waits_for_claim(&still), "no claim is lost by the kill: {still:#?}");
        stage.teller.intervene(holder, Intervention::Cancel).await;
        stage.teller.intervene(waiting[2], Intervention::Cancel).await;
        let operation = stage.teller.end(holder).await;
        stage.nothing_ran_on(&operation, &mark);
        let last = stage.teller.settled(waiting[2]).await;
        assert!(last.summary.state.is_end(), "{last:#?}");
        let through = stage.teller.settled(waiting[1]).await;
        assert_eq!(through.summary.state, OperationState::Succeeded, "{through:#?}");
        for cancelled in [0, 2] {
            let lines = stage.world.lines(0, &format!("{mark}-{cancelled}"));
            assert!(lines <= 1, "ran {lines} times");
        }
        assert_eq!(
            stage.world.lines(0, &format!("{mark}-0")),
            0,
            "what was cancelled waiting never ran"
        );
        stage
            .nothing_is_left_of(&through, Story::Straight, &format!("{mark}-1"))
            .await;
        until("nothing is held", async || (left_over(&stage).await == 0).then_some(())).await;
    }
    stage.deployment.stop().await;
}

/// The gate as it stands.
async fn gate_of(stage: &Stage, id: OperationId) -> control_plane_api::GateView {
    let all = PageQuery::default();
    let gates = answered("gates", || stage.teller.control.gates(id, &all)).await;
    gates.items.into_iter().next().expect("the gate")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_note_20_an_unapproved_node_runs_by_no_path() {
    let stage = Stage::up(&Options::default()).await;
    let scenario = gated();
    stage.teller.publish(&scenario).await;
    let id = stage.teller.start(&scenario.pack, "barred").await;
    let at_gate = |operation: &Operation| {
        let gate = |waiting: &WaitingFor| matches!(waiting, WaitingFor::Gate { .. });
        operation.waiting_for.iter().any(gate)
    };
    stage.teller.standing(id, at_gate).await;
    let gate = gate_of(&stage, id).await;
    let gate_id = gate.gate_id.expect("an open gate has an id");
    let approve = |covers_digest| DecisionRequest {
        decision: Decision::Approve,
        covers_digest,
        comment: String::new(),
    };

    // Who asked for it, who has no right to, and who saw something else.
    let requester = stage.deployment.control_as("person:admin", &["approver", "operator"]);
    let viewer = stage.deployment.control_as("person:eve", &["viewer", "operator"]);
    let other = Sha256Digest::of(b"another plan");
    for (who, digest) in [
        (&requester, gate.covers_digest),
        (&viewer, gate.covers_digest),
        (&stage.teller.approver, other),
    ] {
        let refused = who.decide(id, gate_id, &approve(digest)).await.expect_err("refused");
        assert!(matches!(refused.status(), Some(403 | 409)), "{refused:?}");
    }
    // Interventions.
    let nodes = ["allow".to_owned(), "mark".to_owned()];
    let mut tried = vec![Intervention::Retry {
        nodes: Vec::new(),
        set: Default::default(),
    }];
    // To skip the node itself would be a decision of its own, which lets nothing run.
    tried.push(Intervention::Skip {
        node_id: nodes[0].clone(),
    });
    for node_id in &nodes {
        tried.push(Intervention::Resolve {
            node_id: node_id.clone(),
            resolution: control_plane_api::Resolution::Failed,
            evidence: Vec::new(),
        });
        tried.push(Intervention::Retry {
            nodes: vec![node_id.clone()],
            set: Default::default(),
        });
    }
    for intervention in tried {
        let request = InterventionRequest {
            intervention: intervention.clone(),
            reason: "let it through".into(),
            expected_version: None,
        };
        // Refused, or taken for what it is: nothing that concerns a gate which waits.
        if let Err(error) = stage.teller.control.intervene(id, &request).await {
            assert!(matches!(error.status(), Some(409 | 422)), "{intervention:?}: {error:?}");
        }
        let operation = stage.teller.operation(id).await;
        assert!(
            at_gate(&operation),
            "{intervention:?} leads past the gate: {operation:#?}"
        );
    }
    assert_eq!(stage.world.lines(0, "barred"), 0, "nothing has run");
    // Straight to execution-plane, past the gate: people submit nothing there.
    let query = AttemptListQuery::default();
    let earlier = answered("attempts", || stage.teller.execution.attempts(&query)).await;
    assert!(earlier.items.iter().all(|attempt| attempt.operation_id != id));
    let refused = stage.teller.execution.submit(vec![forged(&stage, id).await]).await;
    assert_eq!(refused.expect_err("refused").status(), Some(403));
    // Restarts.
    stage.arm(Armed::Nothing);
    stage.restart_all().await;
    let operation = stage.teller.standing(id, at_gate).await;
    assert_eq!(gate_of(&stage, id).await.state, GateState::Open, "{operation:#?}");
    assert_eq!(stage.world.lines(0, "barred"), 0, "nothing has run");

    // Denied, and tried again: it is asked again, and denied again.
    for _ in 0..2 {
        let gate = gate_of(&stage, id).await;
        let reject = DecisionRequest {
            decision: Decision::Reject,
            ..approve(gate.covers_digest)
        };
        let gate_id = gate.gate_id.expect("an id");
        stage
            .teller
            .approver
            .decide(id, gate_id, &reject)
            .await
            .expect("a rejection");
        let operation = stage.teller.settled(id).await;
        assert_eq!(operation.summary.state, OperationState::Failed, "{operation:#?}");
        let late = stage
            .teller
            .approver
            .decide(id, gate_id, &approve(gate.covers_digest))
            .await;
        assert_eq!(late.expect_err("decided").status(), Some(409));
        assert_eq!(stage.world.lines(0, "barred"), 0, "what was denied has not run");
        let retry = Intervention::Retry {
            nodes: Vec::new(),
            set: Default::default(),
        };
        stage.teller.intervene(id, retry).await;
        stage.teller.standing(id, at_gate).await;
    }
    // The one path there is.
    stage.teller.approve(id).await;
    let operation = stage.teller.settled(id).await;
    assert_eq!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
    assert_eq!(stage.world.lines(0, "barred"), 1);
    stage.deployment.stop().await;
}

/// A job as control-plane would send it: another one's, under an id of its own.
async fn forged(stage: &Stage, id: OperationId) -> contracts::JobSpec {
    let ran = stage.teller.start("one-host", "model").await;
    stage.teller.settled(ran).await;
    let query = AttemptListQuery {
        operation_id: Some(ran),
        ..Default::default()
    };
    let attempts = answered("attempts", || stage.teller.execution.attempts(&query)).await;
    let model = attempts.items.first().expect("an attempt").attempt_id;
    let mut spec = answered("attempt", || stage.teller.execution.attempt(model)).await.spec;
    spec.operation_id = id;
    spec.attempt_id = kernel::id::AttemptId::new_v7();
    spec
}
