//! Reading the feed: pages by revision, and waiting for more.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use database::{Database, DatabaseError, Scope};
use kernel::id::OrganizationId;
use serde_json::value::RawValue;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_postgres::Row;

use crate::consumers::acknowledge;
use crate::event::{FeedEvent, FeedPage};
use crate::signal::Signal;

const SWEEP: Duration = Duration::from_secs(1);
/// Between two acknowledgements of one consumer.
const ACKNOWLEDGE: Duration = Duration::from_secs(10);

// The state and the rows by one snapshot, so that `head` never lies beyond rows that are missing.
const READ: &str = "SELECT s.head, s.floor, f.revision, f.organization_id, f.key, f.version, f.kind, f.event_id,
       f.payload, f.occurred_at, f.traceparent
FROM feed_state s LEFT JOIN LATERAL (
    SELECT * FROM feed WHERE revision > $1 ORDER BY revision LIMIT $2
) f ON true
ORDER BY f.revision";

// The same for one organization, by its own index; row-level security says it again.
const READ_OWN: &str = "SELECT s.head, s.floor, f.revision, f.organization_id, f.key, f.version, f.kind, f.event_id,
       f.payload, f.occurred_at, f.traceparent
FROM feed_state s LEFT JOIN LATERAL (
    SELECT * FROM feed WHERE organization_id = $3 AND revision > $1 ORDER BY revision LIMIT $2
) f ON true
ORDER BY f.revision";

/// Why the feed cannot be read on from where a reader is.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// What follows was reaped: the reader must begin anew from a snapshot or list.
    #[error("the feed begins after revision {floor}; what the reader needs is gone")]
    TooFarBehind {
        /// The last revision that was reaped.
        floor: i64,
    },
    /// The reader claims to have seen what was never given: it reads another database's feed.
    #[error("the feed ends at revision {head}, before the reader's position")]
    Ahead {
        /// The last revision given.
        head: i64,
    },
    /// The database failed.
    #[error("the feed cannot be read")]
    Database(#[from] DatabaseError),
}

/// A reader of one database's feed. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Feed {
    database: Database,
    signal: Signal,
    swept: Arc<Mutex<Option<Instant>>>,
    /// When each consumer's position was last put into the database.
    acknowledged: Arc<std::sync::Mutex<HashMap<String, Instant>>>,
}

impl Feed {
    /// Reads as the role of `database`, told of news by `signal`.
    #[must_use]
    pub fn new(database: Database, signal: Signal) -> Self {
        Self {
            database,
            signal,
            swept: Arc::default(),
            acknowledged: Arc::default(),
        }
    }

    /// Takes note that `subject`, a service, reads `organization`'s events on from `revision`, so has all up to
    /// it: at most every ten seconds in the database, because reaping is in no hurry.
    ///
    /// # Errors
    /// The database failed; the next call says it again.
    pub async fn reads_on(
        &self,
        subject: &str,
        organization: OrganizationId,
        revision: i64,
    ) -> Result<(), DatabaseError> {
        let consumer = format!("{subject} {organization}");
        if !self.is_due(&consumer) {
            return Ok(());
        }
        let noted = acknowledge(&self.database, &consumer, revision).await;
        if noted.is_err() {
            self.acknowledged().remove(&consumer);
        }
        noted
    }

    /// Whether it is time to acknowledge; from then on it is not, for a while.
    fn is_due(&self, consumer: &str) -> bool {
        let mut acknowledged = self.acknowledged();
        let is_due = acknowledged.get(consumer).is_none_or(|at| at.elapsed() >= ACKNOWLEDGE);
        if is_due {
            acknowledged.insert(consumer.to_owned(), Instant::now());
        }
        is_due
    }

    fn acknowledged(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Up to `limit` events after revision `after` that `scope` may see: an organization's own, or
    /// all (as the worker role).
    ///
    /// # Errors
    /// [`FeedError`].
    pub async fn read(&self, after: i64, limit: u32, scope: impl Into<Scope> + Send) -> Result<FeedPage, FeedError> {
        let scope = scope.into();
        let limit = i64::from(limit);
        let transaction = self.database.begin_hot(scope).await?;
        let rows = match scope {
            Scope::Organization(organization) => {
                let statement = transaction
                    .prepare_cached(READ_OWN)
                    .await
                    .map_err(DatabaseError::from)?;
                let organization = organization.as_uuid();
                transaction.query(&statement, &[&after, &limit, &organization]).await
            }
            Scope::All => {
                let statement = transaction.prepare_cached(READ).await.map_err(DatabaseError::from)?;
                transaction.query(&statement, &[&after, &limit]).await
            }
        };
        let page = page(&rows.map_err(DatabaseError::from)?, after, limit)?;
        self.signal.advance(page.head);
        Ok(page)
    }

    /// [`Feed::read`], but waits up to `patience` when there is nothing yet.
    ///
    /// # Errors
    /// [`FeedError`].
    pub async fn read_or_wait(
        &self,
        after: i64,
        limit: u32,
        scope: impl Into<Scope> + Send,
        patience: Duration,
    ) -> Result<FeedPage, FeedError> {
        let scope = scope.into();
        let deadline = Instant::now() + patience;
        let mut seen = after;
        loop {
            let mut page = self.read(seen, limit, scope).await?;
            seen = page.next_after;
            if !page.events.is_empty() || !self.wait_until(page.head, deadline).await? {
                page.next_after = seen;
                return Ok(page);
            }
        }
    }

    /// Waits until the feed goes beyond revision `after`, at most `patience`. Returns whether it
    /// does.
    ///
    /// # Errors
    /// The database failed.
    pub async fn wait(&self, after: i64, patience: Duration) -> Result<bool, FeedError> {
        self.wait_until(after, Instant::now() + patience).await
    }

    async fn wait_until(&self, after: i64, deadline: Instant) -> Result<bool, FeedError> {
        let mut head = self.signal.subscribe();
        loop {
            if *head.borrow_and_update() > after {
                return Ok(true);
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            let sweep = deadline.min(Instant::now() + SWEEP);
            tokio::select! {
                // The sender lives in `self`.
                _ = head.changed() => {}
                () = tokio::time::sleep_until(sweep) => self.sweep().await?,
            }
        }
    }

    /// The last revision given.
    ///
    /// # Errors
    /// The database failed.
    pub async fn head(&self) -> Result<i64, FeedError> {
        let client = self.database.hot().get().await.map_err(DatabaseError::from)?;
        let row = client.query_one("SELECT head FROM feed_state", &[]).await;
        let head = row.map_err(DatabaseError::from)?.get(0);
        self.signal.advance(head);
        Ok(head)
    }

    /// Looks at the database for what another process sequenced: once a second for all who wait.
    async fn sweep(&self) -> Result<(), FeedError> {
        let mut swept = self.swept.lock().await;
        let is_due = swept.is_none_or(|at| at.elapsed() >= SWEEP / 2);
        if is_due {
            self.head().await?;
            *swept = Some(Instant::now());
        }
        Ok(())
    }
}

fn page(rows: &[Row], after: i64, limit: i64) -> Result<FeedPage, FeedError> {
    // The state's one row is always there.
    let (head, floor) = rows.first().map_or((0, 0), |row| (row.get(0), row.get(1)));
    if after < floor {
        return Err(FeedError::TooFarBehind { floor });
    }
    if after > head {
        return Err(FeedError::Ahead { head });
    }
    let events: Vec<FeedEvent> = rows.iter().filter_map(event).collect();
    let is_full = i64::try_from(events.len()).is_ok_and(|count| count >= limit);
    let next_after = match events.last() {
        Some(last) if is_full => last.revision,
        // All up to the head was looked at.
        _ => head,
    };
    Ok(FeedPage {
        events,
        next_after,
        head,
    })
}

fn event(row: &Row) -> Option<FeedEvent> {
    // Null when no row of the feed joined.
    let revision: i64 = row.get::<_, Option<i64>>(2)?;
    let payload: String = row.get(8);
    let payload = RawValue::from_string(payload).or_else(|_| RawValue::from_string("null".to_owned()));
    Some(FeedEvent {
        revision,
        organization_id: row.get::<_, uuid::Uuid>(3).into(),
        key: row.get(4),
        version: row.get(5),
        kind: row.get(6),
        event_id: row.get(7),
        // A constraint of the table holds it to JSON.
        payload: payload.ok()?,
        occurred_at: row.get(9),
        traceparent: row.get(10),
    })
}
