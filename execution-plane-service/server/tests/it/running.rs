//! What runs is told where results are pulled, so that nobody has to guess whether a job waits or works.

use execution_plane_api::{ResultsPullRequest, ResultsPullResponse, Running, RunningQuery};
use kernel::id::AttemptId;

use crate::harness::{World, noop};

async fn pull(world: &World, query: RunningQuery, wait_seconds: u32) -> ResultsPullResponse {
    let request = ResultsPullRequest {
        limit: 10,
        wait_seconds,
        running: Some(query),
        ..ResultsPullRequest::default()
    };
    world.plane().pull_results(&request).await.unwrap()
}

/// What runs beside `known`, once something does.
async fn running(world: &World, known: Vec<AttemptId>) -> Running {
    let query = RunningQuery { after: None, known };
    pull(world, query, 30).await.running.unwrap()
}

#[tokio::test]
async fn a_held_pull_tells_what_began_and_on_which_runner() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    let spec = noop();
    world.submit(std::slice::from_ref(&spec)).await;
    let lease = runner.one().await;
    let before = pull(&world, RunningQuery::default(), 0).await.running.unwrap();
    assert_eq!(before.attempts, [], "leased is not running");
    runner.running(&lease).await.unwrap();
    let told = running(&world, Vec::new()).await;
    assert_eq!(told.attempts.len(), 1);
    assert_eq!(told.attempts[0].attempt_id, spec.attempt_id);
    assert_eq!(told.attempts[0].operation_id, spec.operation_id);
    assert_eq!(told.attempts[0].runner, "r1");
    assert!(told.attempts[0].started_at <= told.as_of && !told.more);
}

#[tokio::test]
async fn what_is_known_or_began_before_is_not_told_again_and_what_has_ended_never() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop(), noop()]).await;
    let leases = runner.pull(2, 30).await;
    runner.running(&leases[0]).await.unwrap();
    let first = running(&world, Vec::new()).await;
    runner.running(&leases[1]).await.unwrap();
    let second = running(&world, vec![leases[0].attempt_id]).await;
    let told: Vec<AttemptId> = second.attempts.iter().map(|attempt| attempt.attempt_id).collect();
    assert_eq!(told, [leases[1].attempt_id]);
    let later = RunningQuery {
        after: Some(first.attempts[0].started_at),
        known: Vec::new(),
    };
    let again = pull(&world, later, 0).await.running.unwrap();
    assert_eq!(again.attempts, second.attempts);
    for lease in &leases {
        runner.finish(lease, 0).await.unwrap();
    }
    let ended = pull(&world, RunningQuery::default(), 0).await;
    assert_eq!((ended.results.len(), ended.running.unwrap().attempts.len()), (2, 0));
}

#[tokio::test]
async fn who_does_not_ask_is_told_of_results_only() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop()]).await;
    runner.running(&runner.one().await).await.unwrap();
    let request = ResultsPullRequest {
        limit: 10,
        ..ResultsPullRequest::default()
    };
    let answer = world.plane().pull_results(&request).await.unwrap();
    assert_eq!(answer, ResultsPullResponse::default());
}
