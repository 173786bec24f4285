//! The background task that keeps the feed up to date.
//!
//! Takes no input beyond the tables; may be started in any number of processes and killed at any
//! moment.

use std::time::Duration;

use database::Database;
use kernel::with_causes;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::consumers::{forget_silent, reap};
use crate::leader::{Leader, LeaderError};
use crate::signal::Signal;

/// Rows a batch: large enough that one commit serves many, small enough to stay prompt.
const BATCH: i64 = 500;
/// Time between batches while events keep coming: each is a synced commit, which the commits of those
/// who write have to wait for. After a rest the first event is carried at once.
const GATHER: Duration = Duration::from_millis(20);
/// Time between looks when nobody says anything, between tries to become leader, and after a fault.
const SWEEP: Duration = Duration::from_secs(1);

/// How long the feed keeps what everybody has read, unless told otherwise: as long as a reader may be
/// away without beginning anew.
pub const RETENTION: Duration = Duration::from_hours(7 * 24);
/// Time between looks for what is old.
const REAPING: Duration = Duration::from_secs(60);

/// Names of a service's failpoints around the sequencer's commit.
#[derive(Debug, Clone, Copy)]
struct Failpoints {
    before_commit: &'static str,
    after_commit: &'static str,
}

/// Carries the outbox of one database into its feed, wherever it is the leader.
#[derive(Debug, Clone)]
pub struct Sequencer {
    worker: Database,
    signal: Signal,
    failpoints: Option<Failpoints>,
    retention: Duration,
}

impl Sequencer {
    /// A sequencer that works as `worker`, is woken by `signal` and tells readers by it.
    #[must_use]
    pub const fn new(worker: Database, signal: Signal) -> Self {
        Self {
            worker,
            signal,
            failpoints: None,
            retention: RETENTION,
        }
    }

    /// Keeps rows of the feed for `retention`, instead of [`RETENTION`].
    #[must_use]
    pub const fn with_retention(mut self, retention: Duration) -> Self {
        self.retention = retention;
        self
    }

    /// Names the service's failpoints before and after each commit of a batch.
    #[must_use]
    pub const fn with_failpoints(mut self, before_commit: &'static str, after_commit: &'static str) -> Self {
        self.failpoints = Some(Failpoints {
            before_commit,
            after_commit,
        });
        self
    }

    /// Runs until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        while !shutdown.is_cancelled() {
            match Leader::elect(&self.worker).await {
                Ok(Some(leader)) => {
                    tracing::debug!(head = leader.head(), "this process sequences");
                    self.lead(leader, &shutdown).await;
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(error = with_causes(&error), "no sequencer could be elected"),
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = tokio::time::sleep(SWEEP) => {}
            }
        }
    }

    /// Carries batches until leadership ends.
    async fn lead(&self, mut leader: Leader, shutdown: &CancellationToken) {
        self.signal.advance(leader.head());
        let mut not_before = Instant::now();
        let mut reaping = tokio::time::interval(REAPING);
        reaping.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let next = tokio::time::sleep_until(not_before);
            if shutdown.run_until_cancelled(next).await.is_none() {
                return;
            }
            match self.drain(&mut leader).await {
                Ok(false) => {}
                Ok(true) => not_before = Instant::now() + GATHER,
                Err(LeaderError::Fenced) => {
                    tracing::info!("another sequencer has taken over");
                    return;
                }
                Err(error) => {
                    tracing::warn!(error = with_causes(&error), "the sequencer steps down");
                    return;
                }
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.signal.written() => {}
                () = tokio::time::sleep(SWEEP) => {}
                _ = reaping.tick() => self.reap().await,
            }
        }
    }

    /// What is old goes. A failure is told and tried again: the sequence does not depend on it.
    async fn reap(&self) {
        let reaped = match forget_silent(&self.worker, self.retention).await {
            Ok(_) => reap(&self.worker, self.retention).await,
            Err(error) => Err(error),
        };
        match reaped {
            Ok(0) => {}
            Ok(partitions) => tracing::info!(partitions, "old events were reaped from the feed"),
            Err(error) => tracing::warn!(error = with_causes(&error), "the feed could not be reaped"),
        }
    }

    /// Carries all that is there; says whether there was anything.
    async fn drain(&self, leader: &mut Leader) -> Result<bool, LeaderError> {
        let mut any = false;
        loop {
            if let Some(names) = self.failpoints {
                failpoints::hit(names.before_commit);
            }
            let batch = leader.batch(BATCH).await?;
            let carried = batch.placed + batch.parked;
            if carried == 0 {
                return Ok(any);
            }
            any = true;
            if let Some(names) = self.failpoints {
                failpoints::hit(names.after_commit);
            }
            self.signal.advance(batch.head);
            // Who commits from here on says so again.
            if carried < BATCH.unsigned_abs() {
                return Ok(any);
            }
        }
    }
}
