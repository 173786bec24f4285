//! The result channel: a durable set that control-plane pulls and acknowledges.

use contracts::ExecutionResult;
use kernel::id::AttemptId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Running, RunningQuery};

/// `POST /v1/results/pull`: acknowledges, then answers with up to `limit` unacknowledged results of
/// the caller's organization, waiting up to `wait_seconds` for a first one. At least once: a result
/// comes again until it is acknowledged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResultsPullRequest {
    /// Results that the caller holds durably. Unknown ids are ignored.
    #[serde(default)]
    #[schema(max_items = 1000)]
    pub ack: Vec<AttemptId>,
    /// At most 1,000.
    #[schema(minimum = 1, maximum = 1000)]
    pub limit: u32,
    /// At most 30.
    #[serde(default)]
    #[schema(maximum = 30)]
    pub wait_seconds: u32,
    /// Tell also which attempts run. New ones end the wait as a result does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<RunningQuery>,
}

/// Results in the order in which they were stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResultsPullResponse {
    pub results: Vec<ExecutionResult>,
    /// When it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<Running>,
}
