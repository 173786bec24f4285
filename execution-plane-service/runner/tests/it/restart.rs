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
use crate::plane::{EARLIER_SESSION, Plane, PlaneState};
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

/// A job that comes by everything that a runner does: it has content, an input, a secret, output and an
/// artifact. It adds a line to `counter` when it runs.
fn well_travelled(sshd: &Sshd, counter: &Path, seconds: &str) -> Job {
    let script = format!(
        "#!/bin/sh\necho ran >>{}\necho report >$PLATFORM_ARTIFACTS/report\necho up\nsleep {seconds}\n",
        counter.display()
    );
    Job::new("ssh", json!({"script_file": "run.sh"}))
        .on(vec![sshd.target("web-1")])
        .content(&[("run.sh", &script)])
        .with(
            "/inputs/artifacts",
            json!([{"artifact_ref": "artifact://operation/news"}]),
        )
        .with("/output_contract/artifacts", json!(["report"]))
}

/// Whether a runner comes by it only while it ends a job.
fn is_of_ending(failpoint: &str) -> bool {
    ["runner.kill.", "runner.sweep."]
        .iter()
        .any(|part| failpoint.starts_with(part))
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
        let seconds = if is_of_ending(failpoint) { "600" } else { "0.3" };
        let id = runner.submit(well_travelled(&sshd, &counter, seconds));
        let mut doomed = start(&runner, Some(failpoint));
        if is_of_ending(failpoint) {
            let up = |state: &PlaneState| !state.attempts[&id].chunks.is_empty();
            runner.plane.until("the first output", up).await;
            runner
                .plane
                .change(|state| state.attempts.get_mut(&id).unwrap().cancel = true);
        }
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
async fn a_report_that_was_not_accepted_before_the_runner_was_killed_is_brought_by_the_next() {
    let (runner, sshd) = (Runner::prepare().await, Sshd::start());
    runner.put_key(&sshd.private_key);
    runner.plane.change(|state| state.refuse_finishes = true);
    let first = start(&runner, None);
    let counter = sshd.place().join("count");
    let command = format!("echo ran >>{}; echo up", counter.display());
    let id = runner.submit(Job::new("ssh", json!({"commands": [command]})).on(vec![sshd.target("web-1")]));
    runner
        .plane
        .until("a finish that is not stored", |state| state.refused_finishes > 0)
        .await;
    kill(first).await;
    runner.plane.change(|state| state.refuse_finishes = false);
    let second = start(&runner, None);
    let result = runner.plane.result(id).await;
    assert_eq!(
        (result.status, result.job_started, result.reason),
        (ExecutionStatus::Succeeded, Some(JobStarted::Yes), None)
    );
    assert_eq!(runner.plane.output(id), "up\n");
    assert_eq!(
        std::fs::read_to_string(&counter).unwrap(),
        "ran\n",
        "and nothing ran again"
    );
    {
        let state = runner.plane.state();
        let record = &state.attempts[&id];
        assert_eq!((record.finishes, record.session), (1, state.sessions));
        assert_eq!(record.fenced, 0, "nothing is told before a pull has listed the attempt");
    }
    while runner.kept() > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    kill(second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_that_no_pull_confirms_does_not_cost_a_report() {
    let (mut runner, sshd) = (Runner::start().await, Sshd::start());
    runner.put_key(&sshd.private_key);
    runner.plane.change(|state| state.refuse_finishes = true);
    let id = runner.submit(Job::new("ssh", json!({"commands": ["echo up"]})).on(vec![sshd.target("web-1")]));
    runner
        .plane
        .until("a finish that is not stored", |state| state.refused_finishes > 0)
        .await;
    // As if the lease were an earlier session's: only a pull that lists it takes it over.
    runner.plane.change(|state| {
        state.attempts.get_mut(&id).unwrap().session = EARLIER_SESSION;
        state.refuse_finishes = false;
    });
    let result = runner.plane.result(id).await;
    assert_eq!(result.status, ExecutionStatus::Succeeded);
    assert!(runner.plane.state().attempts[&id].fenced > 0);
    runner.end().await;
    assert_eq!(runner.kept(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_of_an_attempt_that_was_declared_lost_meanwhile_is_dropped() {
    let (runner, sshd) = (Runner::prepare().await, Sshd::start());
    runner.put_key(&sshd.private_key);
    runner.plane.change(|state| state.refuse_finishes = true);
    let first = start(&runner, None);
    let id = runner.submit(Job::new("ssh", json!({"commands": ["echo up"]})).on(vec![sshd.target("web-1")]));
    runner
        .plane
        .until("a finish that is not stored", |state| state.refused_finishes > 0)
        .await;
    kill(first).await;
    runner.plane.change(|state| {
        state.refuse_finishes = false;
        state.attempts.get_mut(&id).unwrap().gone = true;
    });
    let second = start(&runner, None);
    while runner.kept() > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(runner.plane.state().attempts[&id].result.is_none());
    kill(second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_runners_never_share_a_state_directory() {
    let mut runner = Runner::start().await;
    runner.plane.until("the enrolment", |state| state.sessions > 0).await;
    let config = harness::config(&runner.plane, runner.directory.path());
    let deps = harness::deps(&runner.secrets).await;
    let second = execution_plane_runner::run(config, deps, CancellationToken::new()).await;
    assert!(matches!(second, Err(execution_plane_runner::RunnerError::State(_))));
    runner.end().await;
}
