//! The protocol under faults: answers that are lost, a service that is away, a lease that is not ours.

use contracts::{ExecutionStatus, ExitCategory, ExitReason, JobStarted};
use serde_json::json;

use crate::harness::{Job, Runner};
use crate::plane::RefusedEnds;
use crate::sshd::Sshd;

fn talkative(lines: u32) -> Job {
    let command = format!("i=0; while [ $i -lt {lines} ]; do echo line $i; i=$((i+1)); done");
    let check = json!({"name": "ok", "capability": "web.http", "type": "command_check", "command": command});
    Job::new("verification", json!({"checks": [check]}))
}

#[tokio::test(flavor = "multi_thread")]
async fn output_whose_acknowledgement_was_lost_is_sent_again_and_never_doubled() {
    let (runner, sshd) = (Runner::start().await, Sshd::start());
    runner.put_key(&sshd.private_key);
    runner.plane.change(|state| {
        state.lose_output_answers = 4;
        state.lose_finish_answers = 2;
    });
    let command = "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); [ $((i % 1000)) -ne 0 ] || sleep 0.1; done";
    let id = runner.submit(Job::new("ssh", json!({"commands": [command]})).on(vec![sshd.target("web-1")]));
    let result = runner.plane.result(id).await;
    assert_eq!(result.status, ExecutionStatus::Succeeded);
    let expected: String = (0..3000).map(|line| format!("line {line}\n")).collect();
    assert_eq!(runner.plane.output(id), expected);
    runner
        .plane
        .until("the runner to forget it", |state| state.attempts[&id].finishes == 1)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_away_for_a_while_costs_nothing_but_time() {
    let (runner, sshd) = (Runner::start().await, Sshd::start());
    runner.put_key(&sshd.private_key);
    let id = runner
        .submit(Job::new("ssh", json!({"commands": ["echo up; sleep 2; echo done"]})).on(vec![sshd.target("web-1")]));
    runner
        .plane
        .until("the first output", |state| !state.attempts[&id].chunks.is_empty())
        .await;
    runner.plane.change(|state| state.away = true);
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    runner.plane.change(|state| state.away = false);
    let result = runner.plane.result(id).await;
    assert_eq!(
        (result.status, runner.plane.output(id)),
        (ExecutionStatus::Succeeded, "up\ndone\n".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_cannot_renew_ends_its_job_before_the_lease_does() {
    let (mut runner, sshd) = (Runner::prepare().await, Sshd::start());
    runner.put_key(&sshd.private_key);
    runner.plane.change(|state| state.lease_seconds = 3.0);
    runner.begin(|_| {}).await;
    let needle = format!("0.{}", uuid::Uuid::now_v7().as_u128());
    let command = format!("echo up; sleep 600 {needle}");
    let id = runner.submit(Job::new("ssh", json!({"commands": [command]})).on(vec![sshd.target("web-1")]));
    runner
        .plane
        .until("the first output", |state| !state.attempts[&id].chunks.is_empty())
        .await;
    let away_since = std::time::Instant::now();
    runner.plane.change(|state| state.away = true);
    while !crate::sshd::running(&needle).is_empty() {
        assert!(away_since.elapsed().as_secs() < 30, "the job runs on without a lease");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    runner.plane.change(|state| state.away = false);
    let result = runner.plane.result(id).await;
    assert_eq!(
        (result.status, result.reason),
        (ExecutionStatus::Failed, Some(ExitReason::LostRunner))
    );
    assert_eq!(result.job_started, Some(JobStarted::Yes));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_full_for_longer_than_its_token_holds_has_it_renewed_meanwhile() {
    let (mut runner, sshd) = (Runner::prepare().await, Sshd::start());
    runner.put_key(&sshd.private_key);
    runner.plane.change(|state| state.token_seconds = 0.3);
    runner.begin(|config| config.capacity = 1).await;
    let needle = format!("0.{}", uuid::Uuid::now_v7().as_u128());
    let command = format!("echo up; sleep 600 {needle}");
    let id = runner.submit(Job::new("ssh", json!({"commands": [command]})).on(vec![sshd.target("web-1")]));
    runner
        .plane
        .until("the first output", |state| !state.attempts[&id].chunks.is_empty())
        .await;
    let before = runner.plane.state().tokens;
    let session = runner.plane.state().sessions;
    runner
        .plane
        .until("further tokens", |state| state.tokens >= before + 3)
        .await;
    runner
        .plane
        .change(|state| state.attempts.get_mut(&id).unwrap().cancel = true);
    assert_eq!(runner.plane.result(id).await.status, ExecutionStatus::Cancelled);
    assert_eq!(runner.plane.state().sessions, session, "it is one session all the time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_gone_ends_the_job_and_nothing_is_reported() {
    let (runner, sshd) = (Runner::start().await, Sshd::start());
    runner.put_key(&sshd.private_key);
    let needle = format!("0.{}", uuid::Uuid::now_v7().as_u128());
    let command = format!("echo up; sleep 600 {needle}");
    let id = runner.submit(Job::new("ssh", json!({"commands": [command]})).on(vec![sshd.target("web-1")]));
    runner
        .plane
        .until("the first output", |state| !state.attempts[&id].chunks.is_empty())
        .await;
    runner
        .plane
        .change(|state| state.attempts.get_mut(&id).unwrap().gone = true);
    // The next job proves that the runner has gone on.
    let next = runner.submit(talkative(1));
    runner.plane.result(next).await;
    while runner.kept() > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(crate::sshd::running(&needle).is_empty());
    assert!(runner.plane.state().attempts[&id].result.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_ends_what_runs_and_hands_back_what_does_not() {
    let (mut runner, sshd) = (Runner::prepare().await, Sshd::start());
    runner.put_key(&sshd.private_key);
    runner.begin(|config| config.capacity = 4).await;
    let id = runner.submit(Job::new("ssh", json!({"commands": ["echo up; sleep 600"]})).on(vec![sshd.target("web-1")]));
    runner
        .plane
        .until("the first output", |state| !state.attempts[&id].chunks.is_empty())
        .await;
    runner.end().await;
    let result = runner.plane.result(id).await;
    assert_eq!(
        (result.status, result.job_started),
        (ExecutionStatus::Failed, Some(JobStarted::Yes))
    );
    assert_eq!(result.reason, Some(ExitReason::LostRunner));
    assert_eq!(runner.kept(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_tells_what_it_really_offers() {
    let runner = Runner::start().await;
    runner.plane.result(runner.submit(talkative(1))).await;
    let state = runner.plane.state();
    let offered = state.registration.as_ref().unwrap();
    assert_eq!(offered.isolation, [contracts::Isolation::Sandbox]);
    assert!(
        !offered.job_types.contains(&contracts::JobType::Ansible),
        "it has no ansible"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_isolation_that_the_runner_cannot_give_is_refused() {
    let runner = Runner::start().await;
    let id = runner.submit(talkative(1).with("/runner/isolation", "container".into()));
    let result = runner.plane.result(id).await;
    assert_eq!(
        (result.status, result.job_started),
        (ExecutionStatus::Failed, Some(JobStarted::No))
    );
    assert!(
        result.exit_summary.message.contains("container was asked for"),
        "{}",
        result.exit_summary.message
    );
}

/// A job that leaves a line on its target each time that it runs, and has evidence.
fn counted(sshd: &Sshd) -> (Job, std::path::PathBuf) {
    let lines = sshd.place().join("runs");
    let check =
        json!({"name": "ran", "capability": "web.http", "type": "command_check", "target": "*", "command": "true"});
    let parameters = json!({"commands": [format!("echo run >>{}", lines.display())], "checks": [check]});
    let job = Job::new("ssh", parameters).on(vec![sshd.target("web-1")]);
    (job.with("/output_contract/evidence", json!(["ran"])), lines)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_is_refused_for_what_it_says_is_told_as_a_bare_failure_and_the_job_not_run_again() {
    let (runner, sshd) = (Runner::start().await, Sshd::start());
    runner.put_key(&sshd.private_key);
    runner.plane.change(|state| {
        state.refused_ends = RefusedEnds::WithEvidence;
        state.lost_starts = 1;
    });
    let (job, lines) = counted(&sshd);
    let result = runner.plane.result(runner.submit(job)).await;
    assert_eq!(
        (result.status, result.exit_summary.category, result.job_started),
        (ExecutionStatus::Failed, ExitCategory::Unknown, Some(JobStarted::Yes))
    );
    let told = &result.exit_summary.message;
    assert!(told.contains("refused") && told.contains("succeeded"), "{told}");
    // The next job proves that the runner has gone on.
    runner.plane.result(runner.submit(talkative(1))).await;
    assert_eq!(std::fs::read_to_string(lines).unwrap(), "run\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_no_end_of_which_is_taken_is_told_to_have_run_and_kept_and_not_run_again() {
    let (mut runner, sshd) = (Runner::start().await, Sshd::start());
    runner.put_key(&sshd.private_key);
    runner.plane.change(|state| {
        state.refused_ends = RefusedEnds::All;
        state.lost_starts = 2;
    });
    let (job, lines) = counted(&sshd);
    let id = runner.submit(job);
    runner
        .plane
        .until("that it ran to be told", |state| {
            state.attempts[&id].started && state.refused_finishes >= 2
        })
        .await;
    runner.plane.change(|state| state.refused_ends = RefusedEnds::None);
    runner.plane.result(runner.submit(talkative(1))).await;
    runner.end().await;
    assert_eq!(runner.kept(), 1, "its report is kept");
    runner.shutdown = tokio_util::sync::CancellationToken::new();
    runner.begin(|_| {}).await;
    let result = runner.plane.result(id).await;
    assert_eq!(result.status, ExecutionStatus::Succeeded, "the next start brings it");
    assert_eq!(std::fs::read_to_string(lines).unwrap(), "run\n");
}
