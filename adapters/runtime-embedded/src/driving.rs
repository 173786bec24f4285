//! The loop: takes notices and sweeps, hands out tasks within bounds, takes their outcomes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use control_plane_ports::runtime::backoff;
use control_plane_ports::{Advanced, DriverError, OperationDriver, RuntimeStatus, Wakeups};
use kernel::id::OperationId;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::agenda::{Agenda, Task};
use crate::{Notice, Options};

const SWEEP: Duration = Duration::from_secs(1);
/// How long a shutdown waits for what is under way; the rest is left to its rows.
const LAST_WORDS: Duration = Duration::from_secs(5);

type Outcome = (Task, Result<Advanced, DriverError>);

pub struct Driving {
    options: Options,
    driver: Arc<dyn OperationDriver>,
    wakeups: Arc<dyn Wakeups>,
    status: Arc<Mutex<RuntimeStatus>>,
    agenda: Agenda,
    advances: JoinSet<Outcome>,
    performs: JoinSet<Outcome>,
    sweeping: JoinSet<Result<Vec<OperationId>, DriverError>>,
    /// The earliest wake-up this process knows of, so that it need not wait for the next full second.
    earliest: Option<DateTime<Utc>>,
    swept: Option<Instant>,
}

impl Driving {
    pub fn new(
        options: Options,
        driver: Arc<dyn OperationDriver>,
        wakeups: Arc<dyn Wakeups>,
        status: Arc<Mutex<RuntimeStatus>>,
    ) -> Self {
        Self {
            options,
            driver,
            wakeups,
            status,
            agenda: Agenda::default(),
            advances: JoinSet::new(),
            performs: JoinSet::new(),
            sweeping: JoinSet::new(),
            earliest: None,
            swept: None,
        }
    }

    pub async fn run(mut self, notices: &mut UnboundedReceiver<Notice>, shutdown: CancellationToken) {
        while !shutdown.is_cancelled() {
            self.agenda.ripen(Instant::now());
            self.sweep_if_due();
            self.hand_out();
            self.tell();
            let rest = self.rest();
            tokio::select! {
                () = shutdown.cancelled() => {}
                Some(notice) = notices.recv() => {
                    self.notice(notice);
                    while let Ok(more) = notices.try_recv() {
                        self.notice(more);
                    }
                }
                Some(joined) = self.advances.join_next() => self.outcome(joined),
                Some(joined) = self.performs.join_next() => self.outcome(joined),
                Some(joined) = self.sweeping.join_next() => self.swept(joined),
                () = tokio::time::sleep(rest) => {}
            }
        }
        self.finish().await;
    }

    fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::Ask(operation) => self.agenda.ask(operation),
            Notice::Took(operation, advanced) => self.take(operation, advanced),
        }
    }

    fn take(&mut self, operation: OperationId, advanced: Advanced) {
        for effect in advanced.effects {
            self.agenda.perform(operation, effect);
        }
        if let Some(due) = advanced.next_wakeup {
            self.earliest = Some(self.earliest.map_or(due, |earliest| earliest.min(due)));
        }
    }

    fn sweep_if_due(&mut self) {
        let now = Instant::now();
        let rested = self.swept.is_none_or(|at| now.duration_since(at) >= SWEEP);
        let due = self.earliest.is_some_and(|due| due <= Utc::now());
        if self.sweeping.is_empty() && (rested || due) {
            self.swept = Some(now);
            self.earliest = None;
            let (wakeups, limit) = (self.wakeups.clone(), self.options.sweep);
            self.sweeping.spawn(async move { wakeups.claim_due(limit).await });
        }
    }

    fn hand_out(&mut self) {
        while self.advances.len() < self.options.advances {
            let Some(operation) = self.agenda.next_advance() else {
                break;
            };
            let driver = self.driver.clone();
            self.advances
                .spawn(async move { (Task::Advance(operation), driver.advance(operation).await) });
        }
        while self.performs.len() < self.options.effects {
            let Some((operation, effect)) = self.agenda.next_perform() else {
                break;
            };
            let driver = self.driver.clone();
            self.performs
                .spawn(async move { (Task::Perform(operation, effect), driver.perform(effect).await) });
        }
    }

    fn outcome(&mut self, joined: Result<Outcome, tokio::task::JoinError>) {
        let (task, result) = match joined {
            Ok(outcome) => outcome,
            // A panic in a driver takes the runtime with it: its rows are intact, its memory may not be.
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => return,
        };
        let operation = match task {
            Task::Advance(operation) | Task::Perform(operation, _) => operation,
        };
        match result {
            Ok(advanced) => {
                self.agenda.done(task);
                self.take(operation, advanced);
            }
            Err(error) => {
                let tries = self.agenda.tries(task);
                let jitter = operation.as_uuid().as_bytes()[15];
                tracing::warn!(%operation, tries, error = &error as &dyn std::error::Error, "trying again later");
                self.agenda.retry(task, Instant::now() + backoff(tries, jitter));
            }
        }
    }

    fn swept(&mut self, joined: Result<Result<Vec<OperationId>, DriverError>, tokio::task::JoinError>) {
        match joined {
            Ok(Ok(operations)) => {
                let full = operations.len() >= self.options.sweep;
                operations.into_iter().for_each(|operation| self.agenda.ask(operation));
                if full {
                    self.earliest = Some(Utc::now());
                }
                self.status.lock().unwrap_or_else(PoisonError::into_inner).swept_at = Some(Utc::now());
            }
            Ok(Err(error)) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the wake-up rows cannot be read"
            ),
            Err(error) => tracing::error!(%error, "a sweep did not end"),
        }
    }

    /// How long nothing needs doing if nothing happens.
    fn rest(&self) -> Duration {
        let now = Instant::now();
        let sweep = self
            .swept
            .map_or(Duration::ZERO, |at| SWEEP.saturating_sub(now.duration_since(at)));
        let wakeup = self
            .earliest
            .map_or(SWEEP, |due| (due - Utc::now()).to_std().unwrap_or(Duration::ZERO));
        let retry = self
            .agenda
            .next_due()
            .map_or(SWEEP, |due| due.saturating_duration_since(now));
        let rest = sweep.min(wakeup).min(retry);
        // A sweep under way is waited for, not spun on.
        if self.sweeping.is_empty() {
            rest
        } else {
            retry.min(SWEEP)
        }
    }

    fn tell(&self) {
        let (operations, waiting) = self.agenda.counts();
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        status.operations = operations as u64;
        status.effects_in_flight = self.performs.len() as u64;
        status.effects_waiting = waiting as u64;
    }

    async fn finish(&mut self) {
        let last = async {
            while self.advances.join_next().await.is_some() {}
            while self.performs.join_next().await.is_some() {}
        };
        if tokio::time::timeout(LAST_WORDS, last).await.is_err() {
            tracing::info!("effects under way are left to their rows");
        }
    }
}
