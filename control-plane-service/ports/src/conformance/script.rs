//! A driver in memory whose "database" outlives the runtimes that are run on it: what it holds is
//! what would be rows, so a test may drop a runtime at any point and start another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::id::OperationId;
use tokio::sync::Notify;

use crate::{Advanced, DriverError, EffectId, OperationDriver, Wakeups};

/// How long a condition may take before the suite gives up on it; nothing is timed by it.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Row {
    /// Signals not yet drained.
    inbox: u64,
    drained: u64,
    advances: u64,
    reports: u64,
    closed: bool,
    effects: BTreeSet<EffectId>,
    wakeup: Option<DateTime<Utc>>,
}

#[derive(Default)]
struct Rows {
    operations: BTreeMap<OperationId, Row>,
    owners: BTreeMap<EffectId, OperationId>,
    performed: BTreeMap<EffectId, u64>,
    refusals: u64,
    hang: bool,
    unreachable: bool,
    running_now: BTreeSet<OperationId>,
    overlapped: bool,
    claims: u64,
}

/// The scripted driver: every drained signal of an operation becomes one effect.
#[derive(Default)]
pub struct Script {
    rows: Mutex<Rows>,
    changed: Notify,
}

impl Script {
    fn change<T>(&self, edit: impl FnOnce(&mut Rows) -> T) -> T {
        let outcome = edit(&mut self.rows.lock().expect("no holder of this lock panics"));
        self.changed.notify_waiters();
        outcome
    }

    /// Accepts a signal as a command would: it is in the rows before anyone is told.
    pub fn signal(&self, operation: OperationId) {
        self.change(|rows| rows.operations.entry(operation).or_default().inbox += 1);
    }

    /// Sets the time at which the operation must be asked.
    pub fn wake_at(&self, operation: OperationId, at: DateTime<Utc>) {
        self.change(|rows| rows.operations.entry(operation).or_default().wakeup = Some(at));
    }

    /// Ends the operation: its effects are void.
    pub fn close(&self, operation: OperationId) {
        self.change(|rows| {
            let row = rows.operations.entry(operation).or_default();
            row.closed = true;
            row.wakeup = None;
            row.effects.clear();
        });
    }

    /// Whether effects begin and never end, as in a process that is about to die.
    pub fn hang(&self, hang: bool) {
        self.change(|rows| rows.hang = hang);
    }

    /// Whether the other side of effects is down.
    pub fn unreachable(&self, unreachable: bool) {
        self.change(|rows| rows.unreachable = unreachable);
    }

    /// How often an effect was refused because the other side was down, or began and hung.
    pub fn refusals(&self) -> u64 {
        self.change(|rows| rows.refusals)
    }

    /// Times the operation was asked.
    pub fn advances(&self, operation: OperationId) -> u64 {
        self.change(|rows| rows.operations.get(&operation).map_or(0, |row| row.advances))
    }

    /// Effects of the operation that reported.
    pub fn reports(&self, operation: OperationId) -> u64 {
        self.change(|rows| rows.operations.get(&operation).map_or(0, |row| row.reports))
    }

    /// Times the wake-up rows were read.
    pub fn sweeps(&self) -> u64 {
        self.change(|rows| rows.claims)
    }

    /// Whether one operation was ever asked twice at the same moment.
    pub fn overlapped(&self) -> bool {
        self.change(|rows| rows.overlapped)
    }

    /// Whether every signal was drained and every effect reported.
    pub fn settled(&self) -> bool {
        self.change(|rows| {
            rows.operations
                .values()
                .all(|row| row.closed || (row.inbox == 0 && row.effects.is_empty() && row.reports == row.drained))
        })
    }

    /// Waits until `condition` holds.
    ///
    /// # Panics
    /// When it does not within a minute: the rule named by `rule` is broken.
    pub async fn until(&self, rule: &str, condition: impl Fn(&Self) -> bool) {
        let reached = async {
            loop {
                let changed = self.changed.notified();
                if condition(self) {
                    return;
                }
                let _ = tokio::time::timeout(Duration::from_millis(100), changed).await;
            }
        };
        assert!(
            tokio::time::timeout(PATIENCE, reached).await.is_ok(),
            "not reached: {rule}"
        );
    }
}

fn outcome(row: &Row) -> Advanced {
    Advanced {
        effects: row.effects.iter().copied().collect(),
        next_wakeup: row.wakeup,
    }
}

#[async_trait]
impl OperationDriver for Script {
    async fn advance(&self, operation: OperationId) -> Result<Advanced, DriverError> {
        self.change(|rows| rows.overlapped |= !rows.running_now.insert(operation));
        tokio::task::yield_now().await;
        Ok(self.change(|rows| {
            rows.running_now.remove(&operation);
            let row = rows.operations.entry(operation).or_default();
            row.advances += 1;
            row.wakeup = row.wakeup.filter(|due| *due > Utc::now());
            let signals = if row.closed { 0 } else { row.inbox };
            row.inbox = 0;
            row.drained += signals;
            for _ in 0..signals {
                let effect = EffectId::new_v7();
                row.effects.insert(effect);
                rows.owners.insert(effect, operation);
            }
            outcome(row)
        }))
    }

    async fn perform(&self, effect: EffectId) -> Result<Advanced, DriverError> {
        let (hang, unreachable) = self.change(|rows| {
            rows.refusals += u64::from(rows.hang || rows.unreachable);
            (rows.hang, rows.unreachable)
        });
        if hang {
            std::future::pending::<()>().await;
        }
        if unreachable {
            return Err(DriverError::Unreachable {
                dependency: "the other side",
                cause: "connection refused".into(),
            });
        }
        Ok(self.change(|rows| {
            let Some(operation) = rows.owners.get(&effect).copied() else {
                return Advanced::default();
            };
            let row = rows.operations.entry(operation).or_default();
            if row.effects.remove(&effect) {
                row.reports += 1;
                *rows.performed.entry(effect).or_default() += 1;
            }
            outcome(row)
        }))
    }
}

#[async_trait]
impl Wakeups for Script {
    async fn claim_due(&self, limit: usize) -> Result<Vec<OperationId>, DriverError> {
        let now = Utc::now();
        Ok(self.change(|rows| {
            rows.claims += 1;
            rows.operations
                .iter()
                .filter(|(_, row)| !row.closed)
                .filter(|(_, row)| row.inbox > 0 || !row.effects.is_empty() || row.wakeup.is_some_and(|due| due <= now))
                .map(|(operation, _)| *operation)
                .take(limit)
                .collect()
        }))
    }
}
