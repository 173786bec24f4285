//! The event feed: facts about attempts, in one gapless order.

use chrono::{DateTime, Utc};
use kernel::id::OrganizationId;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// Query of `GET /v1/feed`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct FeedQuery {
    /// The last revision that the reader has; 0 or absent from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Wait so long for a first event; at most 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_seconds: Option<u32>,
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FeedEvent {
    pub revision: u64,
    pub organization_id: OrganizationId,
    /// What the event is about: the attempt's id.
    pub key: String,
    /// The attempt's version after the change.
    pub version: u64,
    /// `attempt.accepted`, `attempt.leased`, `attempt.running`, `attempt.cancelling`, `attempt.finished`.
    pub kind: String,
    pub event_id: Uuid,
    #[schema(value_type = Object)]
    pub payload: serde_json::Value,
    pub occurred_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// A page of the feed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FeedPage {
    pub events: Vec<FeedEvent>,
    /// Pass as `after` next.
    pub next_after: u64,
    /// The newest revision there is.
    pub head: u64,
}
