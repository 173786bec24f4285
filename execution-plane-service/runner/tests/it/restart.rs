//! A runner that is killed and started again: in a process of its own, so that killing it is real.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use contracts::{ExecutionStatus, ExitCategory, ExitReason, JobStarted};
use secrets_age::AgeSecretStore;
use serde_json::json;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::harness::{self, Job, Runner, outputs};
use crate::plane::Plane;
use crate::sshd::{Sshd, running};

const CHILD: &str = "PLATFORM_TEST_RUNNER_DIRECTORY";
const URL: &str = "PLATFORM_TEST_RUNNER_URL";

/// Not a test when run by itself: the tests below start this binary again with it as a runner.
#[tokio::test(flavor = "multi_thread")]
async fn a_runner_can_be_a_process_of_its_own() {
    let (Ok(directory), Ok(url)) = (std::env::var(CHILD), std::env::var(URL)) else {
        return;
    };
    let directory = Path::new(&directory);
    let mut plane = Plane::start().await;
    plane.url = url;
    let config = harness::config(&plane, directory);
    let deps = harness::deps(&AgeSecretStore::at(&directory.join("secrets.age"))).await;
    execution_plane_runner::run(config, deps, CancellationToken::new())
        .await
        .unwrap();
}

fn start(runner: &Runner, failpoint: Option<&str>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "restart::a_runner_can_be_a_process_of_its_own"])
        .env(CHILD, runner.directory.path())
        .env(URL, &runner.plane.url)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    if let Some(failpoint) = failpoint {
        command.env("PLATFORM_FAILPOINT", failpoint);
    }
    command.spawn().unwrap()
}

async fn kill(mut child: Child) {
    child.kill().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_ran_when_its_runner_was_killed_is_ended_everywhere_and_told_as_it_is() {
    let (runner, sshd) = (Runner::prepare().await, Sshd::start());
    runner.put_key(&sshd.private_key);
    let first = start(&runner, None);
    let needle = format!("0.{}", uuid::Uuid::now_v7().as_u128());
    let command = format!("echo up; setsid sleep 600 {needle}");
    let id = runner.submit(Job::new("ssh", json!({"commands": [command]})).on(vec![sshd.target("web-1")]));
    runner
        .plane
        .until("the first output", |state| !state.attempts[&id].chunks.is_empty())
        .await;
    kill(first).await;
    assert!(
        !running(&needle).is_empty(),
        "the remote command does not know of it yet"
    );
    let second = start(&runner, None);
    let result = runner.plane.result(id).await;
    assert_eq!(
        (result.status, result.exit_summary.category),
        (ExecutionStatus::Failed, ExitCategory::InfrastructureError)
    );
    assert_eq!(
        (result.reason, result.job_started),
        (Some(ExitReason::LostRunner), Some(JobStarted::Yes))
    );
    assert_eq!(outputs(&result)["remote_processes"], "ended");
    assert!(running(&needle).is_empty());
    assert!(
        runner.plane.output(id).starts_with("up\n"),
        "{}",
        runner.plane.output(id)
    );
    kill(second).await;
}

/// Each failpoint of an attempt's life: the job ran at most once (counted on the target), its end is
/// told once, and is true to that count.
#[tokio::test(flavor = "multi_thread")]
async fn a_runner_killed_anywhere_in_an_attempts_life_tells_one_true_end() {
    let (runner, sshd) = (Runner::prepare().await, Sshd::start());
    runner.put_key(&sshd.private_key);
    let mut hit = 0;
    for &failpoint in execution_plane_runner::FAILPOINTS {
        let counter = sshd.place().join(format!("count-{hit}"));
        let command = format!("echo ran >>{}; echo up; sleep 0.3", counter.display());
        let id = runner.submit(Job::new("ssh", json!({"commands": [command]})).on(vec![sshd.target("web-1")]));
        let mut doomed = start(&runner, Some(failpoint));
        let status = tokio::time::timeout(Duration::from_secs(60), doomed.wait()).await;
        let status = status
            .unwrap_or_else(|_| panic!("{failpoint} was not reached"))
            .unwrap();
        assert!(status.code().is_none(), "{failpoint}: ended by itself");
        hit += 1;
        if !runner
            .directory
            .path()
            .join("state/attempts")
            .join(id.to_string())
            .exists()
            && runner.plane.state().attempts[&id].result.is_none()
        {
            // Never recorded: the service, which granted it, is the one to declare it lost.
            assert!(!counter.exists(), "{failpoint}: ran without a record");
            continue;
        }
        let survivor = start(&runner, None);
        let result = runner.plane.result(id).await;
        let ran = std::fs::read_to_string(&counter).unwrap_or_default().lines().count();
        assert!(ran <= 1, "{failpoint}: ran {ran} times");
        assert_eq!(runner.plane.state().attempts[&id].finishes, 1, "{failpoint}");
        if ran == 1 {
            assert_eq!(result.job_started, Some(JobStarted::Yes), "{failpoint}");
        }
        if result.status == ExecutionStatus::Succeeded {
            assert_eq!(ran, 1, "{failpoint}");
        }
        while runner.kept() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        kill(survivor).await;
    }
    assert_eq!(hit, execution_plane_runner::FAILPOINTS.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_runners_never_share_a_state_directory() {
    let mut runner = Runner::start().await;
    runner.plane.until("the enrolment", |state| state.sessions == 1).await;
    let config = harness::config(&runner.plane, runner.directory.path());
    let deps = harness::deps(&runner.secrets).await;
    let second = execution_plane_runner::run(config, deps, CancellationToken::new()).await;
    assert!(matches!(second, Err(execution_plane_runner::RunnerError::State(_))));
    runner.end().await;
}
