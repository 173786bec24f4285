//! An operation from its creation to its end, over HTTP.

use contracts::ExecutionStatus;
use control_plane_api::{FeedQuery, ListOperationsQuery, NodeRunState, OperationState, PageQuery, WaitingFor};
use futures::StreamExt as _;

use crate::plans::{Building, plan};
use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_is_carried_through_claims_validation_job_and_update() {
    let world = World::start().await;
    let id = world
        .begin(plan(&[1]).job("check", &[]).update("tell", &["check"], "check", 1))
        .await;
    let operation = world.until_state(id, OperationState::Succeeded).await;
    assert_eq!(operation.counts.by_state[&NodeRunState::Succeeded], 2);
    let runs = world.node_runs(id).await;
    assert_eq!(runs[0].attempts[0].status, Some(ExecutionStatus::Succeeded));
    let events = world.events(id).await;
    let sequences: Vec<i64> = events.iter().map(|event| event.sequence).collect();
    assert_eq!(sequences, (1..=events.len() as i64).collect::<Vec<_>>());
    world
        .until_so("the finalizers are gone", || {
            world.catalog.facts().finalizers.is_empty()
        })
        .await;
    {
        let facts = world.catalog.facts();
        let (command, _) = facts.updates.values().next().unwrap();
        assert_eq!((facts.updates.len(), command.evidence.len()), (1, 1));
    }
    assert!(
        world
            .ada()
            .claims(&PageQuery::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    world.invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_gets_the_connection_that_the_catalog_confirmed_under_the_claim() {
    let world = World::start().await;
    let id = world.begin(plan(&[1]).job("check", &[])).await;
    world.until_state(id, OperationState::Succeeded).await;
    let facts = world.execution.facts();
    let spec = facts.attempts.values().next().unwrap();
    let target = &spec.target.resources[0];
    assert_eq!(target.connection.as_ref().unwrap()["address"], "127.0.0.1");
    assert_eq!(spec.organization_id, Some(world.organization));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_sees_succeeded_can_read_everything_in_the_same_instant() {
    let world = World::start().await;
    let id = world.begin(plan(&[1]).job("a", &[]).job("b", &["a"])).await;
    let (watcher, mut seen) = (world.ada(), 0);
    let mut events = std::pin::pin!(watcher.watch(id, 0));
    while let Some(event) = events.next().await {
        seen += 1;
        assert_eq!(event.unwrap().sequence, seen, "live events have no gap");
    }
    let operation = world.operation(id).await;
    assert_eq!(operation.summary.state, OperationState::Succeeded);
    assert_eq!(operation.last_event, seen, "the stream ended with the run's last event");
    for run in world.node_runs(id).await {
        assert!(run.attempts[0].evidence.len() == 1 && run.attempts[0].raw_logs.len() == 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_reads_running_while_its_job_runs_and_says_on_which_runner() {
    let mut world = World::start().await;
    world.execution.facts().held.insert("check".to_owned());
    let id = world.begin(plan(&[1]).job("check", &[])).await;
    world
        .until_so("it is handed over", || world.execution.attempts_of("check") == 1)
        .await;
    world.execution.begin("check", "r1");
    let running =
        |operation: &control_plane_api::Operation| operation.counts.by_state.contains_key(&NodeRunState::Running);
    world.until(id, "it runs", running).await;
    let attempt = world.node_runs(id).await.remove(0).attempts.remove(0);
    assert_eq!(
        (attempt.state.as_str(), attempt.runner.as_deref()),
        ("running", Some("r1"))
    );
    assert!(attempt.started_at.is_some());
    // A process that begins anew is told again, and the operation tells it nobody twice.
    world.stop().await;
    world.run(true).await;
    world.execution.let_go("check");
    world.until_state(id, OperationState::Succeeded).await;
    let events = world.events(id).await;
    let starts: Vec<_> = events
        .iter()
        .filter(|event| event.event_type == "attempt_started")
        .collect();
    assert_eq!(starts.len(), 1);
    assert_eq!(starts[0].detail["runner"], "r1");
    assert_eq!(starts[0].actor, "execution-plane");
    world.invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_dependency_is_waited_for_and_shown_and_fails_nothing() {
    let world = World::start().await;
    world.catalog.facts().down = true;
    let id = world.begin(plan(&[1]).job("check", &[])).await;
    let waits = |name: &'static str| {
        move |operation: &control_plane_api::Operation| {
            operation
                .waiting_for
                .iter()
                .any(|wait| matches!(wait, WaitingFor::Dependency { name: n, .. } if n == name))
        }
    };
    world
        .until(id, "it waits for the catalog", waits("resource-catalog"))
        .await;
    world.execution.facts().down = true;
    world.catalog.facts().down = false;
    world
        .until(id, "it waits for execution", waits("execution-plane"))
        .await;
    world.execution.facts().down = false;
    let operation = world.until_state(id, OperationState::Succeeded).await;
    assert!(operation.waiting_for.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn facts_and_lists_tell_of_operations_newest_first() {
    let world = World::start().await;
    let first = world.begin(plan(&[1]).job("check", &[])).await;
    let second = world.begin(plan(&[2]).job("check", &[])).await;
    world.until_state(first, OperationState::Succeeded).await;
    world.until_state(second, OperationState::Succeeded).await;
    let query = ListOperationsQuery {
        limit: Some(1),
        state: Some(OperationState::Succeeded),
        ..ListOperationsQuery::default()
    };
    let page = world.ada().operations(&query).await.unwrap();
    assert_eq!(page.items[0].id, second);
    let next = ListOperationsQuery {
        cursor: page.next_cursor,
        ..query
    };
    let page = world.ada().operations(&next).await.unwrap();
    assert_eq!((page.items[0].id, page.next_cursor), (first, None));
    let feed = FeedQuery {
        wait_seconds: Some(5),
        ..FeedQuery::default()
    };
    let mut after = 0;
    let mut ended = Vec::new();
    while ended.len() < 2 {
        let page = world.ada().feed(&FeedQuery { after, ..feed.clone() }).await.unwrap();
        after = page.next_after;
        ended.extend(
            page.events
                .into_iter()
                .filter(|event| event.payload["status"] == "succeeded"),
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_proof_of_an_operation_verifies_offline_against_the_platforms_key() {
    let world = World::start().await;
    let id = world
        .begin(plan(&[1]).job("check", &[]).update("tell", &["check"], "check", 1))
        .await;
    world.until_state(id, OperationState::Succeeded).await;
    let proof = world.ada().proof(id).await.unwrap();
    let key = world.proof_key.public_key().to_bytes();
    let verified = control_plane_proof::verify(&proof, &key).unwrap();
    assert_eq!(verified.operation_id, id);
    let forger = identity::PrivateKey::generate().public_key().to_bytes();
    assert!(control_plane_proof::verify(&proof, &forger).is_err());
}
