//! How the feed stands, for whoever watches over it.

use database::{Database, DatabaseError};

// Consumers are named after organizations, so what is told of them is the worst of all.
const FIGURES: &str = "SELECT s.head,
    (SELECT count(*) FROM outbox),
    coalesce((SELECT extract(epoch FROM clock_timestamp() - min(occurred_at)) FROM outbox), 0)::float8,
    (SELECT count(*) FROM outbox_parked),
    (SELECT count(*) FROM feed_consumers),
    coalesce((SELECT s.head - min(acknowledged) FROM feed_consumers), 0),
    coalesce((SELECT extract(epoch FROM clock_timestamp() - min(acknowledged_at)) FROM feed_consumers), 0)::float8
FROM feed_state s";

/// Numbers over all organizations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// The last revision given.
    pub head: i64,
    /// Events that were committed and have no revision yet.
    pub waiting: i64,
    /// How long the oldest of them waits, in seconds.
    pub oldest_waiting_seconds: f64,
    /// Events that the feed refused.
    pub parked: i64,
    /// Known consumers.
    pub consumers: i64,
    /// Revisions that the slowest of them has not acknowledged.
    pub most_behind: i64,
    /// Seconds since the most silent of them acknowledged anything.
    pub most_silent_seconds: f64,
}

/// Reads them, as worker.
///
/// # Errors
/// The database failed.
pub async fn figures(worker: &Database) -> Result<Figures, DatabaseError> {
    let client = worker.hot().get().await?;
    let row = client.query_one(FIGURES, &[]).await?;
    Ok(Figures {
        head: row.get(0),
        waiting: row.get(1),
        oldest_waiting_seconds: row.get(2),
        parked: row.get(3),
        consumers: row.get(4),
        most_behind: row.get(5),
        most_silent_seconds: row.get(6),
    })
}
