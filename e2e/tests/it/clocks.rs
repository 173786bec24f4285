//! The wall clock of the runner's machine jumps, forwards and back, under running jobs. The time that passes is
//! what it was: leases and limits count by the monotonic clock and by the service's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use control_plane_api::{NodeRunState, OperationState};
use e2e::{Options, Role};
use execution_plane_api::{Attempt, AttemptListQuery};
use kernel::id::OperationId;

use crate::stage::Stage;
use crate::stories::{Promised, Story, limited, until_told};
use crate::teller::answered;

/// How long the runner's token holds, and how long a job is watched after a jump: longer than it, so that it
/// must be renewed under the job, and longer than a lease.
const TOKEN: f64 = 9.0;
const WATCHED: Duration = Duration::from_secs(12);

/// The clock of one process and of all that it starts, moved by a file.
struct Clock {
    file: PathBuf,
    library: PathBuf,
}

/// Debian keeps it below the machine's own directory of libraries.
fn library() -> PathBuf {
    let found = std::fs::read_dir("/usr/lib")
        .expect("libraries")
        .flatten()
        .map(|entry| entry.path().join("faketime/libfaketimeMT.so.1"))
        .find(|path| path.exists());
    found.expect("libfaketime is needed for this test (Debian: apt-get install libfaketime)")
}

impl Clock {
    fn beside(directory: &Path) -> Self {
        let clock = Self {
            file: directory.join("clock"),
            library: library(),
        };
        clock.set(0);
        clock
    }

    /// So many seconds away from the real time, from now on.
    fn set(&self, seconds: i64) {
        let aside = self.file.with_extension("new");
        std::fs::write(&aside, format!("{seconds:+}\n")).expect("own file");
        std::fs::rename(aside, &self.file).expect("own file");
    }

    /// Starts the runner by this clock.
    async fn restart_runner(&self, stage: &Stage) {
        stage.deployment.kill(Role::Runner).await;
        let text = |path: &Path| path.to_str().expect("a plain path").to_owned();
        let (library, file) = (text(&self.library), text(&self.file));
        let variables = [
            ("LD_PRELOAD", library.as_str()),
            ("FAKETIME_TIMESTAMP_FILE", file.as_str()),
            ("FAKETIME_NO_CACHE", "1"),
            ("DONT_FAKE_MONOTONIC", "1"),
        ];
        stage.deployment.launch(Role::Runner, &variables);
    }
}

/// The attempts of an operation.
async fn attempts(stage: &Stage, id: OperationId) -> Vec<Attempt> {
    let query = AttemptListQuery {
        operation_id: Some(id),
        ..Default::default()
    };
    let listed = answered("attempts", || stage.teller.execution.attempts(&query)).await;
    let mut attempts = Vec::new();
    for summary in listed.items {
        attempts.push(answered("attempt", || stage.teller.execution.attempt(summary.attempt_id)).await);
    }
    attempts
}

/// The platform's own stamps are right and in order, whatever the runner claims.
fn is_stamped_by_the_service(attempt: &Attempt) {
    let summary = &attempt.summary;
    let (started, finished) = (summary.started_at, summary.finished_at.expect("it has ended"));
    assert!(summary.queued_at <= finished, "{summary:#?}");
    assert!(started.is_none_or(|started| started <= finished), "{summary:#?}");
    let off = (Utc::now() - finished).abs();
    assert!(off < TimeDelta::hours(1), "{off} off: {summary:#?}");
}

const DAY: i64 = 86_400;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runner_whose_clock_jumps_keeps_its_jobs_and_its_token_and_runs_nothing_twice() {
    let options = Options {
        lease_seconds: 6.0,
        grace_seconds: 4.0,
        token_seconds: TOKEN,
        ..Options::default()
    };
    let stage = Stage::up(&options).await;
    stage.teller.publish(&until_told("patient")).await;
    stage.teller.publish(&limited("limited", 5)).await;
    let clock = Clock::beside(stage.deployment.path());
    clock.restart_runner(&stage).await;
    for (index, (before, after)) in [(0, DAY), (DAY, -DAY)].into_iter().enumerate() {
        let mark = format!("jump-{index}");
        clock.set(before);
        let id = stage.teller.start("patient", &mark).await;
        stage.running(id, &mark).await;
        clock.set(after);
        tokio::time::sleep(WATCHED).await;
        stage.world.write(0, &format!("{mark}-go"), "");
        let operation = stage.teller.settled(id).await;
        assert_eq!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
        assert_eq!(stage.world.lines(0, &mark), 1, "it ran once");
        let attempts = attempts(&stage, id).await;
        assert_eq!(attempts.len(), 1, "one attempt was enough: {attempts:#?}");
        let claimed = attempts[0].result.as_ref().expect("a result").finished_at;
        assert!(
            (Utc::now() - claimed).abs() > TimeDelta::hours(12),
            "the clock was off: {claimed}"
        );
        is_stamped_by_the_service(&attempts[0]);
        stage.promises_are_kept(&Promised::of(id), &mark).await;
        stage.nothing_is_left_of(&operation, Story::Rebuilt, &mark).await;
    }
    // A job's time limit is of time that passes.
    let id = stage.teller.start("limited", "limited").await;
    stage.running(id, "limited").await;
    clock.set(-30 * DAY);
    let operation = stage.teller.end(id).await;
    stage.nothing_ran_on(&operation, "limited");
    assert_eq!(
        stage.teller.nodes_in(id, NodeRunState::TimedOut).await,
        ["wait"],
        "{operation:#?}"
    );
    // Evidence of a wrong time is still evidence, and a start under a wrong clock is a start.
    for (index, seconds) in [-30 * DAY, 30 * DAY].into_iter().enumerate() {
        clock.set(seconds);
        clock.restart_runner(&stage).await;
        let mark = format!("wrong-{index}");
        let id = stage.teller.start("one-host", &mark).await;
        let operation = stage.teller.settled(id).await;
        assert_eq!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
        stage.nothing_is_left_of(&operation, Story::Straight, &mark).await;
        attempts(&stage, id).await.iter().for_each(is_stamped_by_the_service);
    }
    stage.catalog_is_whole().await;
    stage.deployment.stop().await;
}
