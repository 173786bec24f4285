//! The runner of the embedded platform: a process of its own that is started again when it ends unasked.
//!
//! Invariants: there is at most one at a time, since two may not share a state directory; the waits between
//! starts grow to a bound and shrink again after a steady run; the end that was asked for hands leases back.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use child_process::{DeathSignal, KeptChild, Launch};
use rustix::process::Signal;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::error::CliError;
use crate::exit::Exit;

/// How long a runner may take to hand its leases back.
const GRACE: Duration = Duration::from_secs(30);

/// A runner that is kept running. Dropping it ends the runner without waiting.
pub struct KeptRunner {
    asked: CancellationToken,
    keeper: JoinSet<()>,
}

impl KeptRunner {
    /// Starts this program as a runner with the file `config`; what it says is appended to `log`.
    ///
    /// # Errors
    /// When the first start fails; later ones are tried again.
    pub fn start(config: PathBuf, log: PathBuf) -> Result<Self, CliError> {
        let program = std::env::current_exe()?;
        let start = move || {
            let log = std::fs::OpenOptions::new().create(true).append(true).open(&log)?;
            let launch = Launch::new(&program, DeathSignal::Terminate)
                .args(["runner", "--config"])
                .arg(&config)
                .stdout(log.try_clone()?)
                .stderr(log);
            launch
                .spawn()
                .map_err(|error| CliError::new(Exit::Internal, format!("the runner does not start: {error}")))
        };
        let first = start()?;
        let asked = CancellationToken::new();
        let mut keeper = JoinSet::new();
        keeper.spawn(keep(first, start, Pauses::default(), asked.clone()));
        Ok(Self { asked, keeper })
    }

    /// Asks the runner to end and waits until it has.
    pub async fn stop(mut self) {
        self.asked.cancel();
        while self.keeper.join_next().await.is_some() {}
    }
}

/// The waits between an end and the next start.
struct Pauses {
    first: Duration,
    longest: Duration,
    /// A run of this length makes the next wait the first again.
    steady: Duration,
    next: Duration,
}

impl Pauses {
    const fn new(first: Duration, longest: Duration, steady: Duration) -> Self {
        Self {
            first,
            longest,
            steady,
            next: first,
        }
    }

    /// The wait after a run that took `ran`.
    fn after(&mut self, ran: Duration) -> Duration {
        if ran >= self.steady {
            self.next = self.first;
        }
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause
    }
}

impl Default for Pauses {
    fn default() -> Self {
        Self::new(Duration::from_secs(1), Duration::from_secs(30), Duration::from_secs(60))
    }
}

async fn keep(
    first: KeptChild,
    start: impl Fn() -> Result<KeptChild, CliError> + Send,
    mut pauses: Pauses,
    asked: CancellationToken,
) {
    let mut started = Instant::now();
    let mut running: Result<KeptChild, CliError> = Ok(first);
    loop {
        let why = match &running {
            Ok(child) => tokio::select! {
                ended = child.exited() => ended.map_or_else(|| "its end is not known".to_owned(), |status| status.to_string()),
                () = asked.cancelled() => return end(child).await,
            },
            Err(error) => error.message.clone(),
        };
        let pause = pauses.after(started.elapsed());
        tracing::warn!(
            "the runner ended unasked ({why}; runner.log says more) and is started again in {}s",
            pause.as_secs_f64()
        );
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = asked.cancelled() => return,
        }
        started = Instant::now();
        running = start();
    }
}

async fn end(child: &KeptChild) {
    // The child's own descriptor is open, so a signal cannot fail for a reason that another try would mend.
    let _ = child.signal(Signal::TERM);
    if tokio::time::timeout(GRACE, child.exited()).await.is_err() {
        let _ = child.signal(Signal::KILL);
        child.exited().await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    #[test]
    fn waits_grow_to_a_bound_and_begin_anew_after_a_steady_run() {
        let of = Duration::from_secs;
        let mut pauses = Pauses::new(of(1), of(5), of(60));
        let short: Vec<u64> = (0..5).map(|_| pauses.after(of(0)).as_secs()).collect();
        assert_eq!(short, [1, 2, 4, 5, 5]);
        assert_eq!(pauses.after(of(60)), of(1));
        assert_eq!(pauses.after(of(59)), of(2));
    }

    fn child(script: &str) -> Result<KeptChild, CliError> {
        let launch = Launch::new("/bin/sh", DeathSignal::Kill).args(["-c", script]);
        launch
            .spawn()
            .map_err(|error| CliError::new(Exit::Internal, error.to_string()))
    }

    #[tokio::test]
    async fn a_runner_that_ends_unasked_is_started_again_and_one_that_was_asked_is_not() {
        let starts = Arc::new(AtomicUsize::new(1));
        let again = Arc::new(Notify::new());
        let start = {
            let (starts, again) = (starts.clone(), again.clone());
            move || match starts.fetch_add(1, Ordering::SeqCst) {
                1 => Err(CliError::usage("not this time")),
                _ => {
                    again.notify_one();
                    child("sleep 1000")
                }
            }
        };
        let brief = Duration::from_millis(1);
        let asked = CancellationToken::new();
        let pauses = Pauses::new(brief, brief, Duration::from_secs(60));
        let keeper = tokio::spawn(keep(child("exit 3").unwrap(), start, pauses, asked.clone()));
        again.notified().await;
        asked.cancel();
        keeper.await.unwrap();
        assert_eq!(starts.load(Ordering::SeqCst), 3);
    }
}
