//! What `/metrics` tells of attempts, leases, results and runners, over all organizations.

use std::sync::Arc;

use api_kit::{Counters, Figure, Gauges, Metrics};
use database::{Database, DatabaseError};

use crate::store::lost::Cause;

/// States of an attempt that has not ended.
const LIVE: &[&str] = &["queued", "leased", "starting", "running", "cancelling", "other"];
const RUNNERS: &[&str] = &["taking", "draining"];
const LOST_BY: &[&str] = &["overdue", "abandoned"];

const READ: &str = "SELECT name, value FROM execution_figures()";

/// Attempts that were lost, counted as it happens.
#[derive(Clone)]
pub struct Losses(Counters);

impl Losses {
    /// Counts one.
    pub fn count(&self, cause: Cause) {
        self.0.count(match cause {
            Cause::Overdue { .. } => "overdue",
            Cause::Abandoned { .. } => "abandoned",
        });
    }
}

struct Figures {
    attempts: Gauges,
    runners: Gauges,
    oldest_queued: Figure,
    overdue: Figure,
    unacknowledged: Figure,
    oldest_result: Figure,
    silent: Figure,
}

/// Adds them to `metrics`, looked up as the worker role.
pub fn register(metrics: &Metrics, worker: &Database) -> Losses {
    let figures = Arc::new(Figures {
        attempts: metrics.gauges("attempts", "Attempts that have not ended, by state", "state", LIVE),
        runners: metrics.gauges(
            "runners",
            "Registered runners, by whether they take work",
            "state",
            RUNNERS,
        ),
        oldest_queued: metrics.figure(
            "attempts_oldest_queued_seconds",
            "How long the oldest attempt waits for a runner",
        ),
        overdue: metrics.figure("leases_overdue", "Leases past their deadline that were not ended yet"),
        unacknowledged: metrics.figure(
            "results_unacknowledged",
            "Results that control-plane has not acknowledged",
        ),
        oldest_result: metrics.figure(
            "results_oldest_unacknowledged_seconds",
            "How long the oldest of them waits",
        ),
        silent: metrics.figure(
            "runners_silent",
            "Registered runners that were not heard of for five minutes",
        ),
    });
    let worker = worker.clone();
    metrics.look(move || {
        let (figures, worker) = (figures.clone(), worker.clone());
        async move { Ok(figures.read(&worker).await?) }
    });
    Losses(metrics.counters("attempts_lost", "Attempts that were declared lost", "cause", LOST_BY))
}

impl Figures {
    async fn read(&self, worker: &Database) -> Result<(), DatabaseError> {
        let rows = worker.hot().get().await?.query(READ, &[]).await?;
        let rows: Vec<(&str, f64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let of = |name: &str| {
            rows.iter()
                .find(|(known, _)| *known == name)
                .map_or(0.0, |(_, value)| *value)
        };
        self.attempts.set_all(LIVE.iter().map(|state| (*state, of(state))));
        self.runners
            .set_all([("taking", of("runners_taking")), ("draining", of("runners_draining"))]);
        self.oldest_queued.set(of("oldest_queued_seconds"));
        self.overdue.set(of("leases_overdue"));
        self.unacknowledged.set(of("results_unacknowledged"));
        self.oldest_result.set(of("oldest_result_seconds"));
        self.silent.set(of("runners_silent"));
        Ok(())
    }
}
