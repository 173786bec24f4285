//! Ending jobs: on time, on wish, here and on the target.

use contracts::{ExecutionStatus, ExitCategory, ExitReason, JobStarted};
use kernel::id::AttemptId;
use serde_json::{Value, json};

use crate::harness::{Job, Runner, outputs};
use crate::sshd::{Sshd, running};

/// Ignores TERM, leaves its session, forks twice; says "up" when all of it is there.
fn stubborn(needle: &str) -> String {
    format!(
        "trap '' TERM; (setsid sh -c \"trap '' TERM; while :; do sleep 600 {needle}; done\" >/dev/null 2>&1 &); \
         echo up; while :; do sleep 600 {needle}; done"
    )
}

fn needle() -> String {
    // An argument that sleep takes and that nothing else on the machine has.
    format!("0.{}", uuid::Uuid::now_v7().as_u128())
}

async fn up(runner: &Runner, id: AttemptId) {
    let shown = |state: &crate::plane::PlaneState| {
        state.attempts[&id]
            .chunks
            .iter()
            .any(|chunk| chunk.data.windows(2).any(|bytes| bytes == b"up"))
    };
    runner.plane.until("the job's first words", shown).await;
}

async fn cancel(runner: &Runner, parameters: Value, needle: &str) -> contracts::ExecutionResult {
    let sshd = Sshd::start();
    runner.put_key(&sshd.private_key);
    let id = runner.submit(Job::new("ssh", parameters).on(vec![sshd.target("web-1")]));
    up(runner, id).await;
    assert!(!running(needle).is_empty());
    runner
        .plane
        .change(|state| state.attempts.get_mut(&id).unwrap().cancel = true);
    let result = runner.plane.result(id).await;
    assert!(
        runner.plane.output(id).contains("up"),
        "output from before the end is kept"
    );
    result
}

#[tokio::test(flavor = "multi_thread")]
async fn field_note_35_a_cancelled_remote_command_is_gone_with_and_without_a_pty() {
    let runner = Runner::start().await;
    for pty in [false, true] {
        let needle = needle();
        let result = cancel(&runner, json!({"commands": [stubborn(&needle)], "pty": pty}), &needle).await;
        assert_eq!(
            (result.status, result.reason),
            (ExecutionStatus::Cancelled, Some(ExitReason::Person))
        );
        assert_eq!(
            outputs(&result)["remote_processes"],
            "ended",
            "{}",
            result.exit_summary.message
        );
        assert_eq!(running(&needle), Vec::<u32>::new(), "pty {pty}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn field_note_35_where_the_target_cannot_be_asked_the_result_says_that_it_may_still_run() {
    let runner = Runner::start().await;
    let (mut sshd, needle) = (Sshd::start(), needle());
    runner.put_key(&sshd.private_key);
    let id = runner.submit(Job::new("ssh", json!({"commands": [stubborn(&needle)]})).on(vec![sshd.target("web-1")]));
    up(&runner, id).await;
    sshd.stop();
    runner
        .plane
        .change(|state| state.attempts.get_mut(&id).unwrap().cancel = true);
    let result = runner.plane.result(id).await;
    assert_eq!(
        (result.status, result.exit_summary.category),
        (ExecutionStatus::Failed, ExitCategory::Unknown)
    );
    assert_eq!(
        (result.reason, result.job_started),
        (Some(ExitReason::Person), Some(JobStarted::Yes))
    );
    assert_eq!(outputs(&result)["remote_processes"], "unknown");
    assert!(
        result.exit_summary.message.contains("may still run"),
        "{}",
        result.exit_summary.message
    );
    for pid in running(&needle) {
        drop(
            std::process::Command::new("kill")
                .args(["-KILL", &pid.to_string()])
                .status(),
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deployed_on_purpose_sheds_the_mark_and_outlives_the_job() {
    let runner = Runner::start().await;
    let (kept, ended) = (needle(), needle());
    let deploy = format!(
        "env -u PLATFORM_ATTEMPT setsid sleep 600 {kept} >/dev/null 2>&1 & {}",
        stubborn(&ended)
    );
    let result = cancel(&runner, json!({"commands": [deploy]}), &ended).await;
    assert_eq!(outputs(&result)["remote_processes"], "ended");
    assert_eq!((running(&ended).len(), running(&kept).len()), (0, 1));
    for pid in running(&kept) {
        assert!(
            std::process::Command::new("kill")
                .arg(pid.to_string())
                .status()
                .unwrap()
                .success()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn field_note_36_local_children_that_ignore_term_fork_twice_or_leave_the_session_end_at_the_time_limit() {
    let runner = Runner::start().await;
    let needle = needle();
    let check = json!({"name": "ok", "capability": "web.http", "type": "command_check", "command": stubborn(&needle)});
    let job = Job::new("verification", json!({"checks": [check]})).with("/controls/timeout_seconds", 2.into());
    let result = runner.plane.result(runner.submit(job)).await;
    assert_eq!(
        (result.status, result.reason),
        (ExecutionStatus::TimedOut, Some(ExitReason::Timeout))
    );
    assert_eq!(result.exit_summary.category, ExitCategory::Unknown);
    assert_eq!(running(&needle), Vec::<u32>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_that_came_with_the_lease_starts_nothing() {
    let (runner, sshd) = (Runner::start().await, Sshd::start());
    runner.put_key(&sshd.private_key);
    let touched = sshd.place().join("touched");
    let job = Job::new("ssh", json!({"commands": [["touch", touched]]})).on(vec![sshd.target("web-1")]);
    let result = runner.plane.result(runner.submit(job.cancelled())).await;
    assert_eq!(
        (result.status, result.job_started),
        (ExecutionStatus::Cancelled, Some(JobStarted::No))
    );
    assert!(!touched.exists() && result.started_at.is_none());
}
