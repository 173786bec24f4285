//! What is written to the outbox and read from the feed.

use chrono::{DateTime, Utc};
use kernel::id::OrganizationId;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

/// An event as its owner writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// Whose.
    pub organization: OrganizationId,
    /// What it is about (a resource id, an operation id): rows of one key keep their order.
    pub key: String,
    /// The version of that thing after the change.
    pub version: i64,
    /// The kind of event, like `resource.updated`.
    pub kind: String,
    /// The same at every delivery.
    pub event_id: Uuid,
    /// JSON text, at most 768 KiB.
    pub payload: String,
    /// When the change happened.
    pub occurred_at: DateTime<Utc>,
    /// The trace that caused it.
    pub traceparent: Option<String>,
}

/// An event as the feed has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FeedEvent {
    /// Its place in the total order.
    pub revision: i64,
    /// Whose.
    pub organization_id: OrganizationId,
    /// What it is about.
    pub key: String,
    /// The version of that thing after the change.
    pub version: i64,
    /// The kind of event.
    pub kind: String,
    /// The same at every delivery.
    pub event_id: Uuid,
    /// The JSON that the owner wrote, byte for byte.
    pub payload: Box<RawValue>,
    /// When the change happened.
    pub occurred_at: DateTime<Utc>,
    /// The trace that caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// A part of the feed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FeedPage {
    /// In order of revision.
    pub events: Vec<FeedEvent>,
    /// Where to read on; beyond the last event's revision when what follows is not the reader's.
    pub next_after: i64,
    /// The last revision given at the moment of reading.
    pub head: i64,
}
