//! The port to the catalog's facts: whatever brings them, in the order of their revisions.
//!
//! Invariants that every adapter keeps:
//! - Facts of one resource come in the order of its versions; a fact may come twice.
//! - A position is only ever moved by the reader: asking again `after` the same position gives the same
//!   facts again, so nothing is lost by a reader that dies before it has stored what it read.
//! - One fact that cannot be read hides no other: it is handed over as [`SourceEvent::Unreadable`].
//! - A snapshot is true as of one revision: reading on after that revision misses nothing.

use std::time::Duration;

use async_trait::async_trait;
use contracts::CatalogProjectionEvent;
use futures::stream::BoxStream;
use kernel::id::OrganizationId;
use serde_json::Value;

/// Something that the source handed over.
#[derive(Debug, Clone, PartialEq)]
pub enum SourceEvent {
    Fact(Box<CatalogProjectionEvent>),
    /// It is there, and it is no fact that this version can read.
    Unreadable {
        /// As far as they could be made out.
        revision: Option<i64>,
        resource_id: Option<String>,
        problem: String,
        raw: Value,
    },
}

/// What came after a position.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventBatch {
    pub events: Vec<SourceEvent>,
    /// The position after this batch.
    pub next_after: i64,
    /// The newest position there is, as far as the source knows.
    pub head: i64,
}

/// Every resource of an organization, as of one revision.
pub struct Snapshot {
    pub revision: i64,
    /// The full state of each resource, as in a fact's payload. The snapshot is whole when the stream ends
    /// without an error.
    pub resources: BoxStream<'static, Result<Value, EventSourceError>>,
}

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
pub enum EventSourceError {
    /// The source does not answer. Try again later, from the same position.
    #[error("the catalog's events cannot be reached")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The source no longer reaches back to the position (or was never that far): read a snapshot.
    #[error("the catalog's events no longer reach back to this position")]
    PositionGone,
    /// The source answers with something else, or refuses.
    #[error("the catalog's events cannot be read")]
    Refused(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Brings the catalog's facts.
#[async_trait]
pub trait EventSource: Send + Sync + 'static {
    /// What came after position `after`, at most `limit` revisions, waiting up to `wait` for something
    /// new. An empty batch means that nothing came.
    ///
    /// # Errors
    /// [`EventSourceError`].
    async fn read(
        &self,
        organization: OrganizationId,
        after: i64,
        limit: u32,
        wait: Duration,
    ) -> Result<EventBatch, EventSourceError>;

    /// Everything there is.
    ///
    /// # Errors
    /// [`EventSourceError`]; later, inside the stream, too.
    async fn snapshot(&self, organization: OrganizationId) -> Result<Snapshot, EventSourceError>;
}
