//! What runs now, told on the result channel: the one connection that control-plane holds anyway.
//!
//! Only information: a start that was not told costs nothing but that someone sees it late. So nothing is
//! kept of what was told; the asker says from when on it wants to know, and what of that it knows.

use chrono::{DateTime, Utc};
use kernel::id::{AttemptId, OperationId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Asks for attempts that run, beside results.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunningQuery {
    /// Those that began after this, by this service's clock; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<DateTime<Utc>>,
    /// These are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 1000)]
    pub known: Vec<AttemptId>,
}

/// An attempt whose job runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunningAttempt {
    pub attempt_id: AttemptId,
    pub operation_id: OperationId,
    pub started_at: DateTime<Utc>,
    /// The runner's name.
    pub runner: String,
}

/// Attempts that ran at a moment, the earliest first. One whose job began less than half a second ago may
/// be missing: most jobs that end at once are never told of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Running {
    /// The moment, by this service's clock.
    pub as_of: DateTime<Utc>,
    #[schema(max_items = 1000)]
    pub attempts: Vec<RunningAttempt>,
    /// There are more: ask again from the last one on.
    pub more: bool,
}
