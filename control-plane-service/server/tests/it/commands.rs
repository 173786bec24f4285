//! What people do to operations: decisions and interventions.

use client_kit::ClientError;
use control_plane_api::{Decision, GateState, Intervention, NodeRunState, OperationState, PageQuery, Resolution};
use identity::Role;
use serde_json::json;
use uuid::Uuid;

use crate::plans::{Building, plan};
use crate::world::World;

fn code(error: &ClientError) -> &str {
    &error.problem().unwrap_or_else(|| panic!("{error:?}")).code
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_is_passed_by_another_person_with_the_role_and_the_digest_it_covers() {
    let world = World::start().await;
    let id = world.begin(plan(&[1]).gate("go", &[]).job("check", &["go"])).await;
    let gate = world.open_gate(id).await;
    assert_eq!(
        (gate.covers.as_slice(), gate.targets.len()),
        (&["check".to_owned()][..], 1)
    );
    assert_eq!(gate.requested_by, "person:ada");
    let own = world.client("person:ada", &[Role::Approver]);
    let refused = world.decide(&own, id, &gate, Decision::Approve).await.unwrap_err();
    assert_eq!(code(&refused), "requester_excluded");
    let other = world.client("person:eve", &[Role::Operator]);
    let refused = world.decide(&other, id, &gate, Decision::Approve).await.unwrap_err();
    assert_eq!(code(&refused), "role_missing");
    let mut wrong = gate.clone();
    wrong.covers_digest = kernel::Sha256Digest::of(b"another plan");
    let refused = world
        .decide(&world.bob(), id, &wrong, Decision::Approve)
        .await
        .unwrap_err();
    assert_eq!(code(&refused), "digest_mismatch");
    assert_eq!(
        world.execution.attempts_of("check"),
        0,
        "a closed gate lets nothing through"
    );
    let decided = world.decide(&world.bob(), id, &gate, Decision::Approve).await.unwrap();
    assert_eq!(decided.decided_by.as_deref(), Some("person:bob"));
    world.until_state(id, OperationState::Succeeded).await;
    let late = world
        .decide(&world.bob(), id, &gate, Decision::Reject)
        .await
        .unwrap_err();
    assert_eq!(code(&late), "gate_not_open");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_that_nobody_decides_in_time_denies() {
    let world = World::start().await;
    let id = world
        .begin(plan(&[1]).expiring_gate("go", 1).job("check", &["go"]))
        .await;
    let operation = world
        .until(id, "it ends", |operation| operation.summary.state.is_end())
        .await;
    assert_eq!(operation.summary.state, OperationState::Failed);
    assert_eq!(world.execution.attempts_of("check"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_note_09_a_retry_goes_on_from_the_failed_node_in_the_same_operation() {
    let world = World::start().await;
    world.execution.facts().failing.insert("c".into(), "disk full".into());
    let steps = plan(&[1])
        .job("a", &[])
        .gate("go", &["a"])
        .job("b", &["go"])
        .job("c", &["b"])
        .job("d", &["c"]);
    let id = world.begin(steps).await;
    let gate = world.open_gate(id).await;
    world.decide(&world.bob(), id, &gate, Decision::Approve).await.unwrap();
    world.until_state(id, OperationState::Failed).await;
    let failed = world
        .node_runs(id)
        .await
        .into_iter()
        .find(|run| run.node_id == "c")
        .unwrap();
    assert_eq!(failed.message.as_deref(), Some("disk full"));
    world.execution.facts().failing.clear();
    let retry = Intervention::Retry {
        nodes: Vec::new(),
        set: Default::default(),
    };
    world.intervene(id, retry).await.unwrap();
    let operation = world.until_state(id, OperationState::Succeeded).await;
    assert_eq!((operation.summary.run, operation.runs.len()), (2, 2));
    let counts: Vec<usize> = ["a", "b", "c", "d"]
        .iter()
        .map(|node| world.execution.attempts_of(node))
        .collect();
    assert_eq!(counts, [1, 1, 2, 1]);
    assert_eq!(
        operation.plan.revision, 1,
        "the gate was not asked again, the plan is the same"
    );
    world.invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_with_changed_input_makes_the_next_plan_revision_and_asks_the_gate_again() {
    let world = World::start().await;
    world.execution.facts().failing.insert("c".into(), "bad port".into());
    let steps = plan(&[1])
        .parameter("port", json!(80))
        .job("a", &[])
        .gate("go", &["a"])
        .job("c", &["go"]);
    let id = world.begin(steps).await;
    let gate = world.open_gate(id).await;
    world.decide(&world.bob(), id, &gate, Decision::Approve).await.unwrap();
    world.until_state(id, OperationState::Failed).await;
    world.execution.facts().failing.clear();
    let retry = Intervention::Retry {
        nodes: Vec::new(),
        set: serde_json::from_value(json!({"port": 8080})).unwrap(),
    };
    world.intervene(id, retry).await.unwrap();
    let again = world.open_gate(id).await;
    assert_ne!((again.gate_id, again.covers_digest), (gate.gate_id, gate.covers_digest));
    world.decide(&world.bob(), id, &again, Decision::Approve).await.unwrap();
    let operation = world.until_state(id, OperationState::Succeeded).await;
    assert_eq!(operation.plan.revision, 2);
    let runs = world.node_runs(id).await;
    let revisions: Vec<u32> = runs.iter().map(|run| run.plan_revision).collect();
    assert_eq!(
        (revisions[0], revisions[2]),
        (1, 2),
        "what already ran stays at its revision"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_note_34_a_cancel_in_the_same_second_as_the_start_ends_cancelled_and_nothing_starts_afterwards() {
    let world = World::start().await;
    world.execution.facts().held.insert("a".into());
    for _ in 0..5 {
        let id = world.begin(plan(&[1]).job("a", &[]).job("b", &["a"])).await;
        world.intervene(id, Intervention::Cancel).await.unwrap();
        world.until_state(id, OperationState::Cancelled).await;
    }
    assert_eq!(world.execution.attempts_of("b"), 0);
    let started = world.execution.facts().attempts.len();
    let id = world.begin(plan(&[1]).job("b", &[])).await;
    world.until_state(id, OperationState::Succeeded).await;
    assert_eq!(world.execution.facts().attempts.len(), started + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_of_a_job_that_was_never_handed_over_withdraws_it() {
    let world = World::start().await;
    world.execution.facts().down = true;
    let id = world.begin(plan(&[1]).job("a", &[])).await;
    world
        .until(id, "its job is decided", |operation| {
            operation.summary.state == OperationState::Running
        })
        .await;
    world.intervene(id, Intervention::Cancel).await.unwrap();
    world.until_state(id, OperationState::Cancelling).await;
    world.execution.facts().down = false;
    world.until_state(id, OperationState::Cancelled).await;
    world.invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_note_27_a_plan_is_carried_out_once_and_by_its_digest() {
    let world = World::start().await;
    let ready = world.planner.keep(plan(&[1]).job("check", &[]));
    let mut create = World::create(&ready);
    create.expected_digest = Some(kernel::Sha256Digest::of(b"another"));
    let refused = world.ada().create_operation(&create, "k1").await.unwrap_err();
    assert_eq!(code(&refused), "plan_digest_mismatch");
    let create = World::create(&ready);
    let first = world.ada().create_operation(&create, "k2").await.unwrap();
    let replay = world.ada().create_operation(&create, "k2").await.unwrap();
    assert_eq!(first, replay, "a repeat gets the first answer");
    let refused = world.ada().create_operation(&create, "k3").await.unwrap_err();
    assert_eq!(code(&refused), "plan_carried_out");
    world.until_state(first.summary.id, OperationState::Succeeded).await;
    assert_eq!(world.execution.facts().attempts.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_note_28_a_resource_that_moved_since_the_plan_fails_the_start_and_is_named() {
    let world = World::start().await;
    world.catalog.facts().moved.insert(crate::plans::uid(1));
    let id = world.begin(plan(&[1]).job("check", &[])).await;
    let operation = world.until_state(id, OperationState::Failed).await;
    assert!(operation.message.unwrap().contains("node/web-1"));
    assert_eq!(world.execution.facts().attempts.len(), 0);
    world.invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_failure_shows_its_menu_and_goes_on_as_the_operator_chooses() {
    let world = World::start().await;
    world.execution.facts().failing.insert("a".into(), "no luck".into());
    let id = world
        .begin(plan(&[1]).job("a", &[]).hold_on_failure("a").job("b", &["a"]))
        .await;
    let operation = world.until_state(id, OperationState::Waiting).await;
    let wait = serde_json::to_value(&operation.waiting_for).unwrap();
    assert_eq!(wait[0]["kind"], "intervention");
    assert!(wait[0]["choices"].as_array().unwrap().contains(&json!("retry")));
    world.execution.facts().failing.clear();
    let retry = Intervention::Retry {
        nodes: vec!["a".into()],
        set: Default::default(),
    };
    world.intervene(id, retry).await.unwrap();
    world.until_state(id, OperationState::Succeeded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pause_resume_and_stale_versions_answer_with_the_state_or_a_conflict() {
    let world = World::start().await;
    world.execution.facts().held.insert("a".into());
    let id = world.begin(plan(&[1]).job("a", &[]).job("b", &["a"])).await;
    world
        .until(id, "it runs", |operation| {
            operation.summary.state == OperationState::Running
        })
        .await;
    let paused = world.intervene(id, Intervention::Pause).await.unwrap();
    assert_eq!(paused.summary.state, OperationState::Paused);
    let again = world.intervene(id, Intervention::Pause).await.unwrap_err();
    assert_eq!(code(&again), "already_paused");
    world.execution.let_go("a");
    world
        .until(id, "what runs ends by itself", |operation| {
            operation.counts.by_state.contains_key(&NodeRunState::Succeeded)
        })
        .await;
    assert_eq!(world.execution.attempts_of("b"), 0, "nothing starts in a pause");
    world.intervene(id, Intervention::Resume).await.unwrap();
    world.until_state(id, OperationState::Succeeded).await;
    let over = world.intervene(id, Intervention::Cancel).await.unwrap_err();
    assert_eq!(code(&over), "operation_over");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_organization_sees_nothing_and_commands_are_audited() {
    let mut world = World::start().await;
    let id = world.begin(plan(&[1]).gate("go", &[]).job("check", &["go"])).await;
    world.open_gate(id).await;
    let admin = world.client("person:root", &[Role::Admin]);
    let own = std::mem::replace(&mut world.organization, kernel::id::OrganizationId(Uuid::now_v7()));
    let stranger = world.client("person:mallory", &[Role::Operator, Role::Approver]);
    assert_eq!(code(&stranger.operation(id).await.unwrap_err()), "not_found");
    assert_eq!(
        code(&stranger.gates(id, &PageQuery::default()).await.unwrap_err()),
        "not_found"
    );
    let refused = world.intervene(id, Intervention::Cancel).await.unwrap_err();
    assert_eq!(code(&refused), "not_found");
    assert!(stranger.operations(&Default::default()).await.unwrap().items.is_empty());
    assert!(stranger.claims(&Default::default()).await.unwrap().items.is_empty());
    world.organization = own;
    let audit = admin.audit_facts(&Default::default()).await.unwrap().items;
    let told = |fact: &control_plane_api::AuditFact| (fact.action.clone(), fact.subject.clone(), fact.allowed);
    let created = ("operation.create".to_owned(), format!("operation/{id}"), true);
    assert_eq!(audit.iter().map(told).collect::<Vec<_>>(), [created]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_note_20_a_denied_node_runs_by_no_path() {
    let mut world = World::start().await;
    let id = world.begin(plan(&[1]).gate("go", &[]).job("check", &["go"])).await;
    let gate = world.open_gate(id).await;
    world.decide(&world.bob(), id, &gate, Decision::Reject).await.unwrap();
    world.until_state(id, OperationState::Failed).await;
    let late = world
        .decide(&world.bob(), id, &gate, Decision::Approve)
        .await
        .unwrap_err();
    assert_eq!(code(&late), "gate_not_open");
    world.kill().await;
    world.run(true).await;
    let retry = |nodes: &[&str]| Intervention::Retry {
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        set: Default::default(),
    };
    let refused = world.intervene(id, retry(&["check"])).await.unwrap_err();
    assert_eq!(
        code(&refused),
        "needs_not_retried",
        "the node alone stays behind its gate"
    );
    for nodes in [&["check", "go"][..], &[]] {
        let before = world
            .bob()
            .gates(id, &PageQuery::default())
            .await
            .unwrap()
            .items
            .remove(0);
        world.intervene(id, retry(nodes)).await.unwrap();
        let again = world.open_gate(id).await;
        assert_ne!(again.gate_id, before.gate_id, "a retry asks the gate again");
        world.decide(&world.bob(), id, &again, Decision::Reject).await.unwrap();
        world.until_state(id, OperationState::Failed).await;
    }
    assert_eq!(world.execution.attempts_of("check"), 0);
    world.invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_behind_which_nothing_can_start_is_withdrawn_and_nobody_may_decide_it() {
    let world = World::start().await;
    let id = world.begin(plan(&[1]).gate("go", &[]).job("check", &["go"])).await;
    let gate = world.open_gate(id).await;
    let skip = Intervention::Skip {
        node_id: "check".into(),
    };
    world.intervene(id, skip).await.unwrap();
    let operation = world.until_state(id, OperationState::Succeeded).await;
    assert_eq!(operation.waiting_for, [], "it waits for nobody");
    let seen = world
        .bob()
        .gates(id, &PageQuery::default())
        .await
        .unwrap()
        .items
        .remove(0);
    assert_eq!((seen.state, seen.may_decide), (GateState::Withdrawn, false));
    assert_eq!(seen.decided_by, None);
    let late = world
        .decide(&world.bob(), id, &gate, Decision::Approve)
        .await
        .unwrap_err();
    assert_eq!(code(&late), "gate_not_open");
    let events = world.events(id).await;
    let told = events
        .iter()
        .find(|event| event.event_type == "gate_withdrawn")
        .unwrap();
    assert_eq!(told.text, "gate go is withdrawn: nothing behind it can start any more");
    assert!(events.iter().all(|event| !event.text.is_empty()));
    world.invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_note_29_an_outcome_that_is_not_known_blocks_retry_until_it_is_settled() {
    let world = World::start().await;
    world.execution.facts().lost.insert("a".into());
    let id = world
        .begin(plan(&[1]).job("a", &[]).not_idempotent("a").job("b", &["a"]))
        .await;
    world.until_state(id, OperationState::Unresolved).await;
    let claims = world.ada().claims(&Default::default()).await.unwrap().items;
    assert_eq!(claims[0].holders[0].operation_id, id, "a hold keeps its claims");
    let retry = || Intervention::Retry {
        nodes: Vec::new(),
        set: Default::default(),
    };
    assert!(world.intervene(id, retry()).await.unwrap_err().problem().is_some());
    let settle = Intervention::Resolve {
        node_id: "a".into(),
        resolution: Resolution::Failed,
        evidence: Vec::new(),
    };
    world.intervene(id, settle).await.unwrap();
    world.until_state(id, OperationState::Failed).await;
    world.execution.facts().lost.clear();
    world.intervene(id, retry()).await.unwrap();
    world.until_state(id, OperationState::Succeeded).await;
    assert_eq!(world.execution.attempts_of("a"), 2);
    world.invariants().await;
}
