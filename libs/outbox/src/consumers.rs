//! Known consumers, and reaping what all of them have.

use std::time::Duration;

use database::{Database, DatabaseError};

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

/// Reaps, as worker, up to 1,000 rows that are older than `age` *and* acknowledged by every known
/// consumer. With no known consumer nothing is reaped. Returns how many went.
///
/// The lowest rows go first and the floor moves with them in the same statement, so a reader that
/// is too far behind is told, never silently skipped.
///
/// # Errors
/// The database failed.
pub async fn reap(worker: &Database, age: Duration) -> Result<u64, DatabaseError> {
    let client = worker.hot().get().await?;
    let row = client
        .query_one(
            "WITH due AS (
                 SELECT revision FROM feed
                 WHERE revision <= (SELECT min(acknowledged) FROM feed_consumers)
                 ORDER BY revision LIMIT 1000
             ), young AS (
                 SELECT min(revision) AS revision FROM feed JOIN due USING (revision)
                 WHERE sequenced_at >= now() - make_interval(secs => $1)
             ), old AS (
                 -- Only an unbroken run from the lowest row on, so that the floor is true.
                 SELECT due.revision FROM due, young WHERE young.revision IS NULL OR due.revision < young.revision
             ), gone AS (
                 DELETE FROM feed USING old WHERE feed.revision = old.revision RETURNING feed.revision
             ), floor AS (
                 UPDATE feed_state SET floor = greatest(floor, (SELECT max(revision) FROM gone))
                 WHERE EXISTS (SELECT 1 FROM gone)
             )
             SELECT count(*) FROM gone",
            &[&age.as_secs_f64()],
        )
        .await?;
    let count: i64 = row.get(0);
    Ok(u64::try_from(count).unwrap_or_default())
}
