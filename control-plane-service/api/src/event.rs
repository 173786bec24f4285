use chrono::{DateTime, Utc};
use kernel::id::OperationId;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// One thing that happened in an operation. Sequences of an operation are gapless, from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperationEvent {
    pub sequence: i64,
    /// An open set of words: `node_changed`, `gate_passed`, …
    #[serde(rename = "type")]
    pub event_type: String,
    /// The run that it belongs to, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    /// Who made it happen: a person's subject, `control-plane`, `execution-plane` or `resource-catalog`.
    pub actor: String,
    pub cause: String,
    /// What happened, for people.
    #[serde(default)]
    pub text: String,
    #[schema(value_type = Object)]
    pub detail: serde_json::Value,
    pub occurred_at: DateTime<Utc>,
}

/// A page of an operation's events, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperationEventPage {
    pub items: Vec<OperationEvent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The sequence of the operation's last event when the page was read.
    pub last_event: i64,
    /// The head of the feed before the first page: a watch from here misses nothing.
    pub revision: i64,
}

/// `GET /v1/feed`: facts of the organization in their total order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct FeedQuery {
    /// Give what comes after this revision; 0 from the beginning.
    #[serde(default)]
    #[param(minimum = 0)]
    pub after: i64,
    /// At most 1,000; 100 when absent.
    #[serde(default)]
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
    /// How long to wait for the first event, at most 30.
    #[serde(default)]
    #[param(maximum = 30)]
    pub wait_seconds: Option<u32>,
}

/// One fact of the feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FeedEvent {
    pub event_id: Uuid,
    /// Its position in the service's total order.
    pub revision: i64,
    pub event_type: String,
    pub operation_id: OperationId,
    /// The operation's version after it.
    pub version: i64,
    pub occurred_at: DateTime<Utc>,
    #[schema(value_type = Object)]
    pub payload: serde_json::Value,
}

/// A page of the feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FeedPage {
    pub events: Vec<FeedEvent>,
    /// The `after` of the next call.
    pub next_after: i64,
    /// The last revision there was.
    pub head: i64,
}
