//! Known consumers, and reaping what all of them have.

use std::time::Duration;

use database::{Database, DatabaseError};
use tokio_postgres::error::SqlState;

/// Says that the consumer `name` has everything up to `revision` and needs it no more. The first
/// call makes the consumer known. Never goes back.
///
/// # Errors
/// The database failed.
pub async fn acknowledge(database: &Database, name: &str, revision: i64) -> Result<(), DatabaseError> {
    let client = database.hot().get().await?;
    let statement = client
        .prepare_cached(
            "INSERT INTO feed_consumers AS c (name, acknowledged) VALUES ($1, $2)
             ON CONFLICT (name) DO UPDATE
             SET acknowledged = greatest(c.acknowledged, excluded.acknowledged), acknowledged_at = now()",
        )
        .await?;
    client.execute(&statement, &[&name, &revision]).await?;
    Ok(())
}

/// Forgets a consumer that will not come back, so that it holds nothing any more. As worker.
///
/// # Errors
/// The database failed.
pub async fn forget(worker: &Database, name: &str) -> Result<(), DatabaseError> {
    let client = worker.hot().get().await?;
    client
        .execute("DELETE FROM feed_consumers WHERE name = $1", &[&name])
        .await?;
    Ok(())
}

/// Forgets, as worker, consumers that have acknowledged nothing for longer than `silence`. One that comes
/// back is known again, and told if it came too late.
///
/// # Errors
/// The database failed.
pub async fn forget_silent(worker: &Database, silence: Duration) -> Result<u64, DatabaseError> {
    let client = worker.hot().get().await?;
    let sql = "DELETE FROM feed_consumers WHERE acknowledged_at < now() - make_interval(secs => $1)";
    Ok(client.execute(sql, &[&silence.as_secs_f64()]).await?)
}

/// Drops, as worker, the lowest partitions of the feed whose rows are all older than `age` *and*
/// acknowledged by every known consumer. Returns how many went: none also when a reader was in the way.
///
/// The floor moves in the same transaction, so a reader that is too far behind is told, never silently
/// skipped.
///
/// # Errors
/// The database failed.
pub async fn reap(worker: &Database, age: Duration) -> Result<u64, DatabaseError> {
    let client = worker.hot().get().await?;
    let reaped = client
        .query_one("SELECT feed_reap(make_interval(secs => $1))", &[&age.as_secs_f64()])
        .await;
    match reaped {
        Ok(row) => Ok(u64::try_from(row.get::<_, i64>(0)).unwrap_or_default()),
        Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => Ok(0),
        Err(error) => Err(error.into()),
    }
}
