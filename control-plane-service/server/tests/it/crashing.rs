//! The process dies between any two things; another one carries on.

use control_plane_api::{Intervention, OperationState};

use crate::plans::{Building, plan};
use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_accepted_without_a_runtime_is_carried_out_by_the_next_process() {
    let mut world = World::without_process().await;
    world.run(false).await;
    let id = world.begin(plan(&[1]).job("check", &[])).await;
    let paused = world.intervene(id, Intervention::Pause).await.unwrap();
    assert_eq!(world.catalog.facts().validations, 0, "nobody performs effects");
    let resumed = world.intervene(id, Intervention::Resume).await.unwrap();
    assert!(resumed.summary.version > paused.summary.version);
    world.kill().await;
    world.run(true).await;
    world.until_state(id, OperationState::Succeeded).await;
    world.invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_note_24_a_kill_between_commit_and_effect_loses_no_claim_and_starts_nothing_twice() {
    let mut world = World::start().await;
    world.execution.facts().down = true;
    let id = world.begin(plan(&[1]).job("a", &[]).job("b", &["a"])).await;
    world
        .until(id, "its job is decided", |operation| {
            operation.summary.state == OperationState::Running
        })
        .await;
    world.kill().await;
    world.execution.facts().down = false;
    world.run(true).await;
    world.until_state(id, OperationState::Succeeded).await;
    assert_eq!(world.execution.facts().attempts.len(), 2, "one attempt a node");
    world.invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_that_come_twice_late_and_in_any_order_change_nothing() {
    let mut world = World::start().await;
    world.execution.facts().repeats = true;
    let mut fan = plan(&[1]);
    for index in 0..20 {
        fan = fan.job(&format!("n{index:02}"), &[]);
    }
    let id = world.begin(fan.job("last", &["n00", "n10", "n19"])).await;
    world.until_state(id, OperationState::Succeeded).await;
    let before = world.events(id).await.len();
    world.stop().await;
    world.run(true).await;
    world
        .until_so("every result is acknowledged at last", || {
            world.execution.facts().unacknowledged.is_empty()
        })
        .await;
    assert_eq!(world.events(id).await.len(), before);
    assert_eq!(world.execution.facts().attempts.len(), 21);
    world.invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_dies_again_and_again_finishes_what_it_accepted() {
    let mut world = World::start().await;
    let mut chain = plan(&[1]).job("n0", &[]);
    for index in 1..30 {
        chain = chain.job(&format!("n{index}"), &[&format!("n{}", index - 1)]);
    }
    let id = world.begin(chain).await;
    for round in 0..6 {
        let wanted = round * 4 + 1;
        world
            .until_so("some more jobs came", || {
                world.execution.facts().attempts.len() >= wanted
            })
            .await;
        world.kill().await;
        world.invariants().await;
        world.run(true).await;
    }
    world.until_state(id, OperationState::Succeeded).await;
    assert_eq!(world.execution.facts().attempts.len(), 30, "one attempt a node");
    world.invariants().await;
}
