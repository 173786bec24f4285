use contracts::ExecutionStatus;
use execution_plane_api::AttemptState;

use crate::harness::{World, held, noop};

#[tokio::test]
async fn invariant_8_what_was_accepted_survives_the_end_of_the_service() {
    let mut world = World::start().await;
    let runner = world.runner("r1").await;
    let specs = [noop(), noop(), noop()];
    world.submit(&specs[..2]).await;
    let lease = runner.one().await;
    world.kill().await;
    world.start_again().await;

    world.submit(&specs[2..]).await;
    let pulled = runner.pull_holding(10, 0, &[held(&lease)]).await;
    assert_eq!(pulled.leases.len(), 2, "the queue is still there");
    runner.finish(&lease, 0).await.unwrap();
    world.kill().await;
    world.start_again().await;

    let results = world.results(Vec::new()).await;
    assert_eq!((results.len(), results[0].attempt_id), (1, lease.attempt_id));
    assert_eq!(results[0].status, ExecutionStatus::Succeeded);
    let states: Vec<_> = world.plane().attempts(&Default::default()).await.unwrap().items;
    assert_eq!(states.len(), 3);
    assert!(states.iter().all(|attempt| attempt.state != AttemptState::Queued));
}

#[tokio::test]
async fn two_services_on_one_database_serve_the_same_attempts() {
    let world = World::start().await;
    let twin = world.twin().await;
    let runner = twin.runner("r1").await;
    let waiting = tokio::spawn(async move { (runner.one().await, runner) });
    world.submit(&[noop()]).await;
    let (lease, runner) = waiting.await.unwrap();
    let pulling = world.results(Vec::new());
    let (results, finished) = futures::join!(pulling, runner.finish(&lease, 0));
    assert_eq!(results, [finished.unwrap().result]);
}
