//! The one sequencer that may write, and what it writes.
//!
//! Two fences: an advisory lock, held by a connection of its own, lets one process at a time try;
//! the epoch, checked by every batch in the database, stops one that lost its lock without noticing.

use database::{Database, DatabaseError};
use deadpool_postgres::{ClientWrapper, Object};
use tokio_postgres::error::SqlState;

const LOCK: &str = "SELECT pg_try_advisory_lock(hashtext('outbox.sequencer'), 0)";
const NEW_EPOCH: &str = "UPDATE feed_state SET epoch = epoch + 1 RETURNING epoch, head";
const ENDS: &str = "SELECT coalesce(max(next), 1) FROM feed_partitions";
const EXTEND: &str = "SELECT feed_extend($1)";
const NEXT: &str = "SELECT id FROM outbox ORDER BY id LIMIT $1";

// One statement, so one synchronous commit. Nobody else deletes from the outbox, so the count is
// that of the rows which are moved.
const PLACE: &str = "WITH fence AS (
    UPDATE feed_state SET head = head + (SELECT count(*) FROM outbox WHERE id = ANY ($2))
    WHERE epoch = $1 RETURNING head
), gone AS (
    DELETE FROM outbox o USING fence WHERE o.id = ANY ($2)
    RETURNING o.*, fence.head
), placed AS (
    INSERT INTO feed (revision, organization_id, key, version, kind, event_id, payload, occurred_at, traceparent)
    SELECT head - count(*) OVER () + row_number() OVER (ORDER BY id),
           organization_id, key, version, kind, event_id, payload, occurred_at, traceparent
    FROM gone
)
SELECT head, (SELECT count(*) FROM gone) FROM fence";

const PARK: &str = "WITH fence AS (
    SELECT epoch FROM feed_state WHERE epoch = $1 FOR UPDATE
), gone AS (
    DELETE FROM outbox o USING fence WHERE o.id = $2 RETURNING o.*
)
INSERT INTO outbox_parked (id, organization_id, key, version, kind, event_id, payload, occurred_at, traceparent, reason)
SELECT id, organization_id, key, version, kind, event_id, payload, occurred_at, traceparent, $3 FROM gone";

/// Why a leader cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum LeaderError {
    /// Another has taken over.
    #[error("another sequencer has taken over")]
    Fenced,
    /// The database failed; what was not committed is still in the outbox.
    #[error("the outbox could not be carried on")]
    Database(#[from] DatabaseError),
}

impl From<tokio_postgres::Error> for LeaderError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}

/// What one batch did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Rows that were given a revision.
    pub placed: u64,
    /// Rows that were parked.
    pub parked: u64,
    /// The last revision given.
    pub head: i64,
}

/// The holder of the lock and of the current epoch.
pub struct Leader {
    client: ClientWrapper,
    epoch: i64,
    head: i64,
    /// The first revision that no partition is there for.
    ends: i64,
}

impl Leader {
    /// Becomes the leader, unless there is one. `worker` is the service's worker role.
    ///
    /// # Errors
    /// The database failed.
    pub async fn elect(worker: &Database) -> Result<Option<Self>, DatabaseError> {
        let candidate = Candidate(Some(worker.hot().get().await?));
        let is_ours: bool = candidate.client()?.query_one(LOCK, &[]).await?.get(0);
        if !is_ours {
            candidate.withdraw();
            return Ok(None);
        }
        let client = candidate.win()?;
        let row = client.query_one(NEW_EPOCH, &[]).await?;
        let ends = client.query_one(ENDS, &[]).await?.get(0);
        Ok(Some(Self {
            client,
            epoch: row.get(0),
            head: row.get(1),
            ends,
        }))
    }

    /// The last revision given, as far as this leader knows.
    #[must_use]
    pub const fn head(&self) -> i64 {
        self.head
    }

    /// Carries up to `limit` committed rows into the feed, durably. Zero rows: there were none.
    ///
    /// # Errors
    /// [`LeaderError`]; nothing of the batch is then in the feed, or (when the connection broke in
    /// the commit) all of it.
    pub async fn batch(&mut self, limit: i64) -> Result<Batch, LeaderError> {
        let statement = self.client.prepare_cached(NEXT).await?;
        let rows = self.client.query(&statement, &[&limit]).await?;
        let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        let mut batch = Batch {
            placed: 0,
            parked: 0,
            head: self.head,
        };
        if ids.is_empty() {
            return Ok(batch);
        }
        match self.place(&ids).await {
            Err(LeaderError::Database(DatabaseError::Postgres(error))) if is_poison(&error) => {
                self.one_by_one(&ids, &mut batch).await?;
            }
            placed => batch.placed = placed?,
        }
        batch.head = self.head;
        Ok(batch)
    }

    /// Finds which rows the feed refuses: each is parked, the others keep their order.
    async fn one_by_one(&mut self, ids: &[i64], batch: &mut Batch) -> Result<(), LeaderError> {
        for id in ids {
            match self.place(&[*id]).await {
                Err(LeaderError::Database(DatabaseError::Postgres(error))) if is_poison(&error) => {
                    self.park(*id, &error).await?;
                    batch.parked += 1;
                }
                placed => batch.placed += placed?,
            }
        }
        Ok(())
    }

    async fn place(&mut self, ids: &[i64]) -> Result<u64, LeaderError> {
        self.extend(ids.len()).await?;
        let statement = self.client.prepare_cached(PLACE).await?;
        let row = self.client.query_opt(&statement, &[&self.epoch, &ids]).await?;
        let row = row.ok_or(LeaderError::Fenced)?;
        self.head = row.get(0);
        let count: i64 = row.get(1);
        Ok(u64::try_from(count).unwrap_or_default())
    }

    /// Sees to it that `count` more rows have a partition to go to.
    async fn extend(&mut self, count: usize) -> Result<(), LeaderError> {
        let last = self.head.saturating_add(i64::try_from(count).unwrap_or(i64::MAX));
        if last >= self.ends {
            self.ends = self.client.query_one(EXTEND, &[&last]).await?.get(0);
        }
        Ok(())
    }

    async fn park(&self, id: i64, error: &tokio_postgres::Error) -> Result<(), LeaderError> {
        let reason = error.as_db_error().map_or("unknown", |error| error.message());
        let parked = self.client.execute(PARK, &[&self.epoch, &id, &reason]).await?;
        if parked == 0 {
            return Err(LeaderError::Fenced);
        }
        tracing::error!(id, reason, "an event cannot be put into the feed and is parked");
        Ok(())
    }
}

/// A connection that may hold the lock. Dropped midway, it leaves the pool and closes: a connection
/// that went back with the lock would keep everyone from leading.
struct Candidate(Option<Object>);

impl Candidate {
    fn client(&self) -> Result<&Object, DatabaseError> {
        self.0.as_ref().ok_or_else(gone)
    }

    /// The lock was not had: the connection goes back to the pool.
    fn withdraw(mut self) {
        drop(self.0.take());
    }

    /// The lock lives as long as the connection, so the connection leaves the pool.
    fn win(mut self) -> Result<ClientWrapper, DatabaseError> {
        self.0.take().map(Object::take).ok_or_else(gone)
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        drop(self.0.take().map(Object::take));
    }
}

fn gone() -> DatabaseError {
    DatabaseError::Unavailable("the connection is gone".into())
}

/// Whether the row itself is at fault: its data, a constraint, or a size. Anything else (a full
/// disk, a lost connection, a time-out) strikes every row alike, as does a missing partition, which is
/// told as the violation of a constraint without a name.
fn is_poison(error: &tokio_postgres::Error) -> bool {
    let Some(error) = error.as_db_error() else {
        return false;
    };
    match &error.code().code()[..2] {
        "22" | "54" => true,
        "23" => *error.code() != SqlState::CHECK_VIOLATION || error.constraint().is_some(),
        _ => false,
    }
}
