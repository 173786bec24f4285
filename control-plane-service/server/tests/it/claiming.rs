//! Claims: across operations, and what becomes of them.

use control_plane_api::{CreateOperation, Intervention, OperationState, Overlap, PageQuery, WaitingFor};
use uuid::Uuid;

use crate::plans::{Building, plan, uid};
use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_note_23_overlapping_operations_serialize_and_disjoint_ones_run_together() {
    let world = World::start().await;
    world.execution.facts().held.insert("hold".into());
    let first = world.begin(plan(&[1, 2]).job("hold", &[])).await;
    world
        .until(first, "it runs", |operation| {
            operation.summary.state == OperationState::Running
        })
        .await;
    let second = world.begin(plan(&[2, 3]).job("check", &[])).await;
    let third = world.begin(plan(&[3, 1]).job("check", &[])).await;
    let apart = world.begin(plan(&[4]).job("check", &[])).await;
    world.until_state(apart, OperationState::Succeeded).await;
    for waiting in [second, third] {
        let operation = world.until_state(waiting, OperationState::Waiting).await;
        assert!(
            matches!(&operation.waiting_for[0], WaitingFor::Claim { .. }),
            "{operation:?}"
        );
    }
    world.execution.let_go("hold");
    for id in [first, second, third] {
        world.until_state(id, OperationState::Succeeded).await;
    }
    world.invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_note_26_the_claim_view_names_holder_age_and_reason_and_waiting_work_cancels_at_once() {
    let world = World::start().await;
    world.execution.facts().held.insert("hold".into());
    let holder = world.begin(plan(&[1]).job("hold", &[])).await;
    world
        .until(holder, "it runs", |operation| {
            operation.summary.state == OperationState::Running
        })
        .await;
    let waiter = world.begin(plan(&[1]).job("check", &[])).await;
    let operation = world.until_state(waiter, OperationState::Waiting).await;
    let WaitingFor::Claim { holder: who, since, .. } = &operation.waiting_for[0] else {
        panic!("{operation:?}");
    };
    assert_eq!(*who, holder);
    let claims = world.ada().claims(&PageQuery::default()).await.unwrap().items;
    assert_eq!(claims[0].uid, uid(1));
    assert_eq!(claims[0].holders[0].operation_id, holder);
    assert_eq!(claims[0].holders[0].since, *since);
    assert!(claims[0].holders[0].why.contains("person:ada"));
    assert_eq!(claims[0].waiters[0].waits_for, Some(holder));
    let cancelled = world.intervene(waiter, Intervention::Cancel).await.unwrap();
    assert_eq!(cancelled.summary.state, OperationState::Cancelled);
    let claims = world.ada().claims(&PageQuery::default()).await.unwrap().items;
    assert!(claims[0].waiters.is_empty());
    assert_eq!(world.execution.attempts_of("check"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_want_to_queue_is_refused_with_the_holder() {
    let world = World::start().await;
    world.execution.facts().held.insert("hold".into());
    let holder = world.begin(plan(&[1]).job("hold", &[])).await;
    world
        .until(holder, "it runs", |operation| {
            operation.summary.state == OperationState::Running
        })
        .await;
    let ready = world.planner.keep(plan(&[1]).job("check", &[]));
    let create = CreateOperation {
        on_overlap: Overlap::Refuse,
        ..World::create(&ready)
    };
    let refused = world
        .ada()
        .create_operation(&create, &Uuid::now_v7().to_string())
        .await
        .unwrap();
    assert_eq!(refused.summary.state, OperationState::Failed);
    let holds = format!("operation {holder} holds node/web-1");
    assert!(refused.message.unwrap().contains(&holds));
    world.invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_ahead_in_the_queue_is_not_called_a_holder_until_it_holds() {
    let world = World::start().await;
    let ways = |operation: &control_plane_api::Operation| -> Vec<(kernel::id::OperationId, bool)> {
        let claims = operation.waiting_for.iter().filter_map(|waiting| match waiting {
            WaitingFor::Claim { holder, holds, .. } => Some((*holder, *holds)),
            _ => None,
        });
        claims.collect()
    };
    world.execution.facts().held.extend(["first".into(), "second".into()]);
    let first = world.begin(plan(&[1]).job("first", &[])).await;
    world
        .until_so("it works", || world.execution.attempts_of("first") == 1)
        .await;
    let second = world.begin(plan(&[1]).job("second", &[])).await;
    world.until_state(second, OperationState::Waiting).await;
    let third = world.begin(plan(&[1]).job("third", &[])).await;
    let waits = world.until_state(third, OperationState::Waiting).await;
    assert_eq!(ways(&waits), [(first, true), (second, false)]);
    world.execution.let_go("first");
    world
        .until_so("the next works", || world.execution.attempts_of("second") == 1)
        .await;
    let waits = world.operation(third).await;
    assert_eq!(ways(&waits), [(second, true)]);
    world.execution.let_go("second");
    world.until_state(third, OperationState::Succeeded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_note_25_many_at_once_for_one_resource_get_it_one_after_the_other() {
    let world = World::start().await;
    let begun = (0..16).map(|_| world.begin(plan(&[1]).job("check", &[])));
    let ids = futures::future::join_all(begun).await;
    for id in ids {
        world.until_state(id, OperationState::Succeeded).await;
        world.invariants().await;
    }
    assert_eq!(world.execution.facts().attempts.len(), 16);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_note_22_a_waiting_operation_holds_its_claims() {
    let world = World::start().await;
    let gated = world.begin(plan(&[1]).gate("go", &[]).job("check", &["go"])).await;
    world.open_gate(gated).await;
    let claims = world.ada().claims(&PageQuery::default()).await.unwrap().items;
    assert_eq!(claims[0].holders[0].operation_id, gated);
    let next = world.begin(plan(&[1]).job("check", &[])).await;
    world.until_state(next, OperationState::Waiting).await;
    world.intervene(gated, Intervention::Cancel).await.unwrap();
    world.until_state(gated, OperationState::Cancelled).await;
    world.until_state(next, OperationState::Succeeded).await;
}
