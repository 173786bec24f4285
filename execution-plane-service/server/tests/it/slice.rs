use execution_plane_api::{AttemptState, OutputEvent};
use futures::TryStreamExt;
use identity::Role;

use crate::harness::{World, chunks, noop};

#[tokio::test]
async fn an_attempt_goes_from_submission_to_an_acknowledged_result() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    let spec = noop();
    world.submit(std::slice::from_ref(&spec)).await;

    let lease = runner.one().await;
    assert_eq!((lease.attempt_id, lease.epoch), (spec.attempt_id, 1));
    assert_eq!(lease.job, spec);
    assert!(lease.deadline_in_seconds > 3500.0 && lease.deadline_in_seconds <= 3600.0);

    let running = runner.running(&lease).await.unwrap();
    assert_eq!(running.state, AttemptState::Running);
    let acknowledged = runner.output(&lease, chunks(&["one\n", "two\n", "three"])).await;
    assert_eq!(acknowledged.unwrap(), 3);
    let finished = runner.finish(&lease, 3).await.unwrap();
    assert_eq!(finished.state, AttemptState::Succeeded);

    let results = world.results(Vec::new()).await;
    assert_eq!(results, std::slice::from_ref(&finished.result));
    let log = &results[0].raw_logs[0];
    assert_eq!((log.size_bytes, log.lines), (13, 3));
    assert_eq!(log.sha256, kernel::Sha256Digest::of(b"one\ntwo\nthree"));

    let viewer = world.person(Role::Viewer);
    assert_eq!(viewer.whole_output(spec.attempt_id).await.unwrap(), "one\ntwo\nthree");
    let attempt = viewer.attempt(spec.attempt_id).await.unwrap();
    assert_eq!(attempt.summary.state, AttemptState::Succeeded);
    assert_eq!(attempt.result.as_ref(), Some(&finished.result));
    let tail: Vec<OutputEvent> = viewer.tail(spec.attempt_id, 1).try_collect().await.unwrap();
    assert_eq!(tail.len(), 3, "two chunks after the first, and the end: {tail:?}");
}

#[tokio::test]
async fn a_waiting_runner_is_leased_the_attempt_in_the_submission_itself() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    let waiting = tokio::spawn(async move { (runner.pull(4, 30).await, runner) });
    // The submission is repeated until the runner waits: each time with a new attempt.
    loop {
        let spec = noop();
        let outcome = world.plane().submit(vec![spec.clone()]).await.unwrap();
        if outcome.outcomes[0].state == Some(AttemptState::Leased) {
            break;
        }
        tokio::task::yield_now().await;
        if waiting.is_finished() {
            // It had come before it waited, and took the attempt from the queue.
            break;
        }
    }
    let (leases, runner) = waiting.await.unwrap();
    assert!(!leases.is_empty());
    for lease in leases {
        runner.finish(&lease, 0).await.unwrap();
    }
}
