use std::collections::HashMap;
use std::sync::Arc;

use contracts::{ExecutionStatus, ExitCategory, ExitReason, JobStarted};
use execution_plane_api::{AttemptState, HeldAttempt, RenewOutcome, StartPhase};
use kernel::id::AttemptId;

use crate::harness::{World, chunks, code, held, noop, patient, registration, started};

#[tokio::test]
async fn sixteen_runners_racing_lease_each_attempt_exactly_once() {
    let world = World::start().await;
    let mut specs: Vec<_> = (0..200).map(|_| noop()).collect();
    let late = specs.split_off(100);
    world.submit(&specs).await;
    let mut runners = Vec::new();
    for n in 0..16 {
        runners.push(Arc::new(world.runner(&format!("r{n}")).await));
    }
    let (count, mut counted) = tokio::sync::watch::channel(0_usize);
    let stop = tokio_util::sync::CancellationToken::new();
    let racing: Vec<_> = runners
        .into_iter()
        .map(|runner| {
            let (count, stop) = (count.clone(), stop.clone());
            tokio::spawn(async move {
                let mut own: Vec<HeldAttempt> = Vec::new();
                loop {
                    let pulled = tokio::select! {
                        pulled = runner.pull_holding(3, 5, &own) => pulled,
                        () = stop.cancelled() => return own,
                    };
                    assert!(pulled.gone.is_empty());
                    own.extend(pulled.leases.iter().map(held));
                    count.send_modify(|count| *count += pulled.leases.len());
                }
            })
        })
        .collect();
    world.submit(&late).await;
    counted.wait_for(|count| *count >= 200).await.unwrap();
    stop.cancel();
    let mut leased: HashMap<AttemptId, usize> = HashMap::new();
    for runner in racing {
        for attempt in runner.await.unwrap() {
            assert_eq!(attempt.epoch, 1);
            *leased.entry(attempt.attempt_id).or_default() += 1;
        }
    }
    assert_eq!(leased.len(), 200);
    assert!(leased.values().all(|times| *times == 1));
}

#[tokio::test]
async fn field_note_39_a_runner_paused_past_its_lease_is_fenced_off_and_nothing_starts_twice() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    let spec = noop();
    world.submit(std::slice::from_ref(&spec)).await;
    let lease = runner.one().await;
    runner.running(&lease).await.unwrap();
    runner.output(&lease, chunks(&["before\n"])).await.unwrap();
    world.leases_run_out().await;

    let results = world.results(Vec::new()).await;
    let result = &results[0];
    assert_eq!(result.status, ExecutionStatus::Failed);
    assert_eq!(result.exit_summary.category, ExitCategory::InfrastructureError);
    assert_eq!(result.job_started, Some(JobStarted::Yes));
    assert_eq!(result.reason, Some(ExitReason::LostRunner));
    assert_eq!(result.raw_logs[0].size_bytes, 7, "output before the loss is kept");

    for late in [
        runner.running(&lease).await.unwrap_err(),
        runner
            .output(&lease, chunks(&["before\n", "after\n"]))
            .await
            .unwrap_err(),
        runner.finish(&lease, 1).await.unwrap_err(),
    ] {
        assert_eq!(code(&late), (409, "stale_epoch"));
    }
    let renewed = runner.renew(&[held(&lease)], 0).await;
    assert_eq!(renewed.leases[0].outcome, RenewOutcome::Gone);
    let pulled = runner.pull_holding(5, 0, &[held(&lease)]).await;
    assert_eq!((pulled.leases.len(), pulled.gone), (0, vec![spec.attempt_id]));
    let other = world.runner("r2").await;
    assert!(other.pull(5, 0).await.is_empty(), "never granted again");
    let attempt = world.plane().attempt(spec.attempt_id).await.unwrap();
    assert_eq!(attempt.summary.state, AttemptState::Lost);
    let again = world.plane().submit(vec![spec]).await.unwrap();
    assert_eq!(again.outcomes[0].state, Some(AttemptState::Lost));
}

#[tokio::test]
async fn an_attempt_lost_before_the_runner_told_of_its_start_says_that_it_is_unknown() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop()]).await;
    runner.one().await;
    world.leases_run_out().await;
    assert_eq!(
        world.results(Vec::new()).await[0].job_started,
        Some(JobStarted::Unknown)
    );
}

#[tokio::test]
async fn field_note_40_healthy_leases_survive_a_restart_of_the_service() {
    let mut config = patient();
    config.lease.comeback = chrono::TimeDelta::hours(1);
    let mut world = World::start_with(config).await;
    let runner = world.runner("r1").await;
    world.submit(&[noop()]).await;
    let lease = runner.one().await;
    runner.running(&lease).await.unwrap();
    world.kill().await;
    // Longer away than the lease: still nothing is declared dead before runners could come back.
    world.leases_run_out().await;
    world.start_again().await;
    let renewed = runner.renew(&[held(&lease)], 0).await;
    assert_eq!(renewed.leases[0].outcome, RenewOutcome::Ok);
    runner.finish(&lease, 0).await.unwrap();
    assert_eq!(world.results(Vec::new()).await[0].status, ExecutionStatus::Succeeded);
}

#[tokio::test]
async fn what_an_answer_failed_to_deliver_is_delivered_again_under_the_same_epoch() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop()]).await;
    let lost_answer = runner.one().await;
    let again = runner.one().await;
    assert_eq!(again.attempt_id, lost_answer.attempt_id);
    assert_eq!(again.epoch, lost_answer.epoch);
    assert!(runner.pull_holding(5, 0, &[held(&again)]).await.leases.is_empty());
}

#[tokio::test]
async fn a_restarted_runner_keeps_what_it_lists_and_what_it_does_not_list_is_lost() {
    let world = World::start().await;
    let before = world.runner("r1").await;
    world.submit(&[noop(), noop()]).await;
    let leases = before.pull(2, 30).await;
    before.running(&leases[1]).await.unwrap();

    let after = world.runner("r1").await;
    assert_eq!(after.session.runner_id, before.session.runner_id);
    let refused = before.client.pull(&Default::default()).await.unwrap_err();
    assert_eq!(code(&refused), (401, "session_superseded"));
    let pulled = after.pull_holding(0, 0, &[held(&leases[0])]).await;
    assert!(pulled.leases.is_empty() && pulled.gone.is_empty());

    let lost = world.results(Vec::new()).await;
    assert_eq!(lost.len(), 1);
    assert_eq!(
        (lost[0].attempt_id, lost[0].job_started),
        (leases[1].attempt_id, Some(JobStarted::Yes))
    );
    let stale = before.finish(&leases[0], 0).await.unwrap_err();
    assert_eq!(code(&stale), (409, "stale_epoch"), "the older process is fenced off");
    after.finish(&leases[0], 0).await.unwrap();
}

#[tokio::test]
async fn what_an_earlier_session_leased_is_taken_from_the_next_once_a_pull_has_listed_it() {
    let world = World::start().await;
    let before = world.runner("r1").await;
    world.submit(&[noop()]).await;
    let lease = before.one().await;
    before.running(&lease).await.unwrap();
    before.output(&lease, chunks(&["before\n"])).await.unwrap();

    let after = world.runner("r1").await;
    for early in [
        after
            .output(&lease, chunks(&["before\n", "after\n"]))
            .await
            .unwrap_err(),
        after.finish(&lease, 1).await.unwrap_err(),
    ] {
        assert_eq!(code(&early), (409, "stale_epoch"), "not listed yet");
    }
    assert_eq!(
        after.renew(&[held(&lease)], 0).await.leases[0].outcome,
        RenewOutcome::Gone
    );

    let pulled = after.pull_holding(0, 0, &[held(&lease)]).await;
    assert!(pulled.leases.is_empty() && pulled.gone.is_empty());
    assert_eq!(
        after.renew(&[held(&lease)], 0).await.leases[0].outcome,
        RenewOutcome::Ok
    );
    assert_eq!(after.output(&lease, chunks(&["before\n", "after\n"])).await.unwrap(), 2);
    after.finish(&lease, 2).await.unwrap();
    let results = world.results(Vec::new()).await;
    assert_eq!(results[0].status, ExecutionStatus::Succeeded);
    assert_eq!(results[0].raw_logs[0].size_bytes, 13);
}

#[tokio::test]
async fn another_runners_attempt_does_not_exist() {
    let world = World::start().await;
    let (one, two) = (world.runner("r1").await, world.runner("r2").await);
    world.submit(&[noop()]).await;
    let lease = one.one().await;
    for refused in [
        two.running(&lease).await.unwrap_err(),
        two.output(&lease, chunks(&["x"])).await.unwrap_err(),
        two.finish(&lease, 0).await.unwrap_err(),
    ] {
        assert_eq!(code(&refused), (404, "not_found"));
    }
    let renewed = two.renew(&[held(&lease)], 0).await;
    assert_eq!(renewed.leases[0].outcome, RenewOutcome::Gone);
    one.finish(&lease, 0).await.unwrap();
}

#[tokio::test]
async fn an_older_pull_of_the_same_runner_gives_way_to_a_newer_one() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    let pulls = async { futures::join!(runner.pull(1, 30), runner.pull(1, 30)) };
    let submit = async {
        // Submitted when the older pull has given way, or at the latest after its own wait.
        world.submit(&[noop()]).await;
    };
    let ((one, two), ()) = futures::join!(pulls, submit);
    let delivered: std::collections::BTreeSet<_> = one.iter().chain(&two).map(|lease| lease.attempt_id).collect();
    assert_eq!(delivered.len(), 1);
}

#[tokio::test]
async fn isolation_that_is_weaker_than_asked_is_not_recorded_as_a_start() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    let mut spec = noop();
    spec.runner.isolation = contracts::Isolation::Sandbox;
    world.submit(&[spec]).await;
    let lease = runner.one().await;
    let mut report = started(lease.epoch, StartPhase::Running);
    report.isolation_used = contracts::Isolation::Process;
    let refused = runner.client.started(lease.attempt_id, &report).await.unwrap_err();
    assert_eq!(code(&refused), (422, "isolation_too_weak"));
    runner.running(&lease).await.unwrap();
    let attempt = world.plane().attempt(lease.attempt_id).await.unwrap();
    assert_eq!(attempt.isolation_used, Some(contracts::Isolation::Sandbox));
}

#[tokio::test]
async fn capacity_and_drain_are_respected() {
    let world = World::start().await;
    let mut small = registration("small");
    small.capacity = 2;
    let runner = world.runner_of(world.organization, small).await;
    world.submit(&(0..5).map(|_| noop()).collect::<Vec<_>>()).await;
    let leases = runner.pull(10, 0).await;
    assert_eq!(leases.len(), 2, "never more than its capacity");
    let both: Vec<_> = leases.iter().map(held).collect();
    assert!(runner.pull_holding(10, 0, &both).await.leases.is_empty());
    runner.finish(&leases[0], 0).await.unwrap();

    let admin = world.person(identity::Role::Admin);
    let listed = admin.runners(&Default::default()).await.unwrap().items.remove(0);
    assert_eq!(
        (listed.in_use, listed.status),
        (1, execution_plane_api::RunnerStatus::Online)
    );
    let drained = admin.drain(listed.runner_id, listed.version, true).await.unwrap();
    assert_eq!(drained.status, execution_plane_api::RunnerStatus::Draining);
    assert!(runner.pull_holding(10, 0, &both[1..]).await.leases.is_empty());
    let refused = admin.drain(listed.runner_id, listed.version, false).await.unwrap_err();
    assert_eq!(code(&refused), (412, "version_mismatch"));
    admin.drain(listed.runner_id, drained.version, false).await.unwrap();
    assert_eq!(runner.pull_holding(10, 0, &both[1..]).await.leases.len(), 1);
}
