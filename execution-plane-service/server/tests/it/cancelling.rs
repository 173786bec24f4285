use contracts::{ExecutionStatus, ExitCategory, ExitReason, JobStarted};
use execution_plane_api::{AttemptState, CancelRequest, RenewOutcome};
use kernel::id::AttemptId;

use crate::harness::{World, code, finish, held, noop};

#[tokio::test]
async fn field_note_34_a_queued_attempt_is_cancelled_at_once_and_never_starts() {
    let world = World::start().await;
    let spec = noop();
    world.submit(std::slice::from_ref(&spec)).await;
    let cancelled = world
        .plane()
        .cancel(spec.attempt_id, CancelRequest::default())
        .await
        .unwrap();
    assert_eq!(cancelled.summary.state, AttemptState::Cancelled);
    let result = world.results(Vec::new()).await.remove(0);
    assert_eq!(result.status, ExecutionStatus::Cancelled);
    assert_eq!(result.exit_summary.category, ExitCategory::Unknown);
    assert_eq!((result.job_started, result.started_at), (Some(JobStarted::No), None));
    assert_eq!(result.reason, Some(ExitReason::Person));
    assert!(world.runner("r1").await.pull(5, 0).await.is_empty());
    let again = world
        .plane()
        .cancel(spec.attempt_id, CancelRequest::default())
        .await
        .unwrap();
    assert_eq!(
        again.summary.version, cancelled.summary.version,
        "a repeat changes nothing"
    );
    let unknown = world
        .plane()
        .cancel(AttemptId::new_v7(), CancelRequest::default())
        .await
        .unwrap_err();
    assert_eq!(code(&unknown), (404, "not_found"));
}

#[tokio::test]
async fn a_held_attempt_is_told_to_its_runner_at_the_renewal_that_waits() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop()]).await;
    let lease = runner.one().await;
    runner.running(&lease).await.unwrap();
    let mut own = held(&lease);
    let held_now = [own];
    let reason = CancelRequest {
        reason: Some(ExitReason::Limit),
    };
    let plane = world.plane();
    let (renewed, cancelled) = futures::join!(runner.renew(&held_now, 30), plane.cancel(lease.attempt_id, reason));
    assert_eq!(cancelled.unwrap().summary.state, AttemptState::Cancelling);
    assert_eq!(renewed.leases[0].outcome, RenewOutcome::CancelRequested);
    assert!(
        renewed.leases[0].deadline_in_seconds.is_some(),
        "the lease goes on until the end is reported"
    );
    own.cancelling = true;
    assert_eq!(
        runner.renew(&[own], 0).await.leases[0].outcome,
        RenewOutcome::CancelRequested
    );

    let mut report = finish(&lease, 0);
    report.result.status = ExecutionStatus::Cancelled;
    report.result.exit_summary.category = ExitCategory::Unknown;
    let ended = runner.client.finish(lease.attempt_id, &report).await.unwrap();
    assert_eq!(ended.state, AttemptState::Cancelled);
    assert_eq!(ended.result.reason, Some(ExitReason::Limit), "who asked is told apart");
}

#[tokio::test]
async fn field_note_08_a_job_that_ends_by_itself_while_it_is_cancelled_reports_what_really_happened() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop()]).await;
    let lease = runner.one().await;
    world
        .plane()
        .cancel(lease.attempt_id, CancelRequest::default())
        .await
        .unwrap();
    let ended = runner.finish(&lease, 0).await.unwrap();
    assert_eq!(ended.state, AttemptState::Succeeded);
    let attempt = world.plane().attempt(lease.attempt_id).await.unwrap();
    assert!(attempt.summary.cancel_requested_at.is_some());
}

#[tokio::test]
async fn a_cancel_that_comes_before_the_lease_is_delivered_comes_with_it() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop()]).await;
    let lease = runner.one().await;
    world
        .plane()
        .cancel(lease.attempt_id, CancelRequest::default())
        .await
        .unwrap();
    assert!(runner.one().await.cancel_requested, "delivered again, with the cancel");
}

#[tokio::test]
async fn field_note_37_who_ended_an_attempt_is_told_apart() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop(), noop(), noop()]).await;
    let leases = runner.pull(3, 30).await;
    let reasons = [ExitReason::Timeout, ExitReason::Policy];
    let statuses = [ExecutionStatus::TimedOut, ExecutionStatus::Failed];
    for ((lease, reason), status) in leases.iter().zip(reasons).zip(statuses) {
        let mut report = finish(lease, 0);
        report.result.status = status;
        report.result.reason = Some(reason);
        runner.client.finish(lease.attempt_id, &report).await.unwrap();
    }
    let told = world.results(Vec::new()).await;
    world.leases_run_out().await;
    let lost = world
        .results(told.iter().map(|result| result.attempt_id).collect())
        .await;
    let found: Vec<_> = told.iter().chain(&lost).map(|result| result.reason.unwrap()).collect();
    assert_eq!(found, [ExitReason::Timeout, ExitReason::Policy, ExitReason::LostRunner]);
    let states: Vec<_> = world.plane().attempts(&Default::default()).await.unwrap().items;
    let mut states: Vec<_> = states.into_iter().map(|attempt| attempt.state).collect();
    states.sort();
    assert_eq!(
        states,
        [AttemptState::Failed, AttemptState::TimedOut, AttemptState::Lost]
    );
}
