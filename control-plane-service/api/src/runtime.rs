use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `GET /v1/runtime`: what drives the operations of this deployment, and how it fares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuntimeView {
    /// `embedded` or `temporal`.
    pub kind: String,
    pub running: bool,
    pub operations: u64,
    pub effects_in_flight: u64,
    /// Effects that wait for another service to answer.
    pub effects_waiting: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swept_at: Option<DateTime<Utc>>,
}
