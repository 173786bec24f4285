//! What `/metrics` tells of operations, effects and the copy of the catalog, over all organizations.

use std::sync::Arc;

use api_kit::{Figure, Gauges, Metrics};
use database::{Database, DatabaseError};

/// States of an operation whose run is not over.
const OPEN: &[&str] = &[
    "pending",
    "validating",
    "running",
    "paused",
    "waiting_gate",
    "waiting_claim",
    "waiting_intervention",
    "cancelling",
    "unresolved",
    "other",
];
/// Who an effect is asked of.
const ASKED_OF: &[&str] = &["resource-catalog", "execution-plane", "other"];

const READ: &str = "SELECT kind, name, value FROM operation_figures()";

struct Figures {
    operations: Gauges,
    effects: Gauges,
    /// By the name that the database has for each.
    ones: Vec<(&'static str, Figure)>,
}

/// Adds them to `metrics`, looked up as the worker role.
pub fn register(metrics: &Metrics, worker: &Database) {
    let ones = [
        (
            "effects_failing",
            "effects_failing",
            "Effects that failed at their last try",
        ),
        (
            "oldest_effect_seconds",
            "effects_oldest_seconds",
            "How long the oldest effect is not done",
        ),
        (
            "wakeups_overdue_seconds",
            "wakeups_overdue_seconds",
            "How long the most overdue operation waits to be asked",
        ),
        (
            "inbox",
            "inbox",
            "Results and signals that no operation has taken in yet",
        ),
        (
            "deliveries",
            "content_undelivered",
            "Contents of packs that execution-plane does not have yet",
        ),
        (
            "projection_behind",
            "projection_behind",
            "Revisions of the catalog that the copy furthest behind lacks",
        ),
        (
            "projection_behind_seconds",
            "projection_behind_seconds",
            "How long a copy that lacks something has applied nothing",
        ),
        (
            "projection_gaps",
            "projection_gaps",
            "Gaps that copies of the catalog have seen",
        ),
        (
            "projection_rebuilds_asked",
            "projection_rebuilds_asked",
            "Copies of the catalog that are to be made anew",
        ),
        (
            "projection_parked",
            "projection_parked",
            "Resources set aside because a fact of theirs could not be applied",
        ),
    ];
    let figures = Arc::new(Figures {
        operations: metrics.gauges(
            "operations",
            "Operations whose run is not over, by state",
            "state",
            OPEN,
        ),
        effects: metrics.gauges(
            "effects",
            "Effects that are not done, by who is asked",
            "asked",
            ASKED_OF,
        ),
        ones: ones
            .map(|(known, name, help)| (known, metrics.figure(name, help)))
            .into(),
    });
    let worker = worker.clone();
    metrics.look(move || {
        let (figures, worker) = (figures.clone(), worker.clone());
        async move { Ok(figures.read(&worker).await?) }
    });
}

impl Figures {
    async fn read(&self, worker: &Database) -> Result<(), DatabaseError> {
        let rows = worker.hot().get().await?.query(READ, &[]).await?;
        let rows: Vec<(&str, &str, f64)> = rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
        let of = |kind: &str| {
            let of_kind = rows.iter().filter(move |(known, ..)| *known == kind);
            of_kind.map(|(_, name, value)| (*name, *value)).collect::<Vec<_>>()
        };
        self.operations.set_all(of("operations"));
        self.effects.set_all(of("effects"));
        let numbers = of("one");
        for (known, figure) in &self.ones {
            let number = numbers.iter().find(|(name, _)| name == known);
            figure.set(number.map_or(0.0, |(_, number)| *number));
        }
        Ok(())
    }
}
