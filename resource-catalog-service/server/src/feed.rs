//! Reading what was committed, in order, by organization.

use std::time::Duration;

use api_kit::{Caller, Problem};
use database::Database;
use kernel::id::OrganizationId;
use outbox::{FeedError, Signal};

use crate::store::feed::{self, FedChange};

/// Revisions read at once.
const CHUNK: u32 = 100;
/// An answer stops growing past this many bytes of records.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The feed of committed changes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Feed {
    reader: outbox::Feed,
    signal: Signal,
}

/// Some changes, and where to read on.
#[derive(Debug)]
pub struct Changes {
    pub changes: Vec<FedChange>,
    pub next_after: i64,
    pub head: i64,
}

impl Feed {
    /// Reads as the role of `database`; `signal` is shared with the sequencer of this process.
    pub fn new(database: Database, signal: Signal) -> Self {
        Self {
            reader: outbox::Feed::new(database, signal.clone()),
            signal,
        }
    }

    /// Says that changes were committed.
    pub fn changed(&self) {
        self.signal.wake();
    }

    /// The newest revision.
    ///
    /// # Errors
    /// 503 when the database does not answer.
    pub async fn head(&self) -> Result<i64, Problem> {
        self.reader.head().await.map_err(|error| problem(&error))
    }

    /// Takes note that `caller`, a service, has everything up to revision `after`.
    ///
    /// # Errors
    /// 503 when the database does not answer.
    pub async fn reads_on(&self, caller: &Caller, after: i64) -> Result<(), Problem> {
        let noted = self.reader.reads_on(&caller.subject, caller.organization, after).await;
        noted.map_err(|error| api_kit::database_problem(&error))
    }

    /// Up to `limit` changes of `organization` after revision `after`, waiting up to `patience` for the first.
    ///
    /// # Errors
    /// 410 `revision_gone` when `after` is no place in this feed any more.
    pub async fn read(
        &self,
        organization: OrganizationId,
        after: i64,
        limit: u32,
        patience: Duration,
    ) -> Result<Changes, Problem> {
        let first = limit.min(CHUNK);
        let page = self.reader.read_or_wait(after, first, organization, patience).await;
        let mut page = page.map_err(|error| problem(&error))?;
        let mut changes = Vec::new();
        let mut bytes = 0;
        loop {
            let full = u32::try_from(page.events.len()).is_ok_and(|count| count >= CHUNK);
            for fed in &page.events {
                bytes += fed.payload.get().len();
                changes.push(feed::read(fed).map_err(Problem::from)?);
                if bytes > MAX_BYTES {
                    return Ok(Changes {
                        changes,
                        next_after: fed.revision,
                        head: page.head,
                    });
                }
            }
            let left = limit.saturating_sub(u32::try_from(changes.len()).unwrap_or(u32::MAX));
            if !full || left == 0 {
                return Ok(Changes {
                    changes,
                    next_after: page.next_after,
                    head: page.head,
                });
            }
            let next = self.reader.read(page.next_after, left.min(CHUNK), organization).await;
            page = next.map_err(|error| problem(&error))?;
        }
    }
}

fn problem(error: &FeedError) -> Problem {
    let gone = |detail: String| {
        Problem::new(410, "revision_gone", "The feed does not have this revision any more")
            .detail(detail)
            .remedy("Read a snapshot or a list again, and go on from its revision.")
    };
    match error {
        FeedError::TooFarBehind { floor } => {
            gone(format!("It begins after revision {floor}.")).with("oldest_revision", *floor)
        }
        FeedError::Ahead { head } => gone(format!("It ends at revision {head}.")).with("head", *head),
        FeedError::Database(error) => api_kit::database_problem(error),
    }
}
