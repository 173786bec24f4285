//! Query parameters of lists and of the feed.

use api_kit::Limit;
use execution_plane_api::AttemptState;
use kernel::id::OperationId;
use serde::Deserialize;
use utoipa::IntoParams;

/// Which attempts.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AttemptFilter {
    pub operation_id: Option<OperationId>,
    #[param(inline)]
    pub state: Option<AttemptState>,
    /// From the page before.
    pub cursor: Option<String>,
    #[serde(default)]
    pub limit: Limit,
}

/// Which page of runners.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RunnerPage {
    /// From the page before.
    pub cursor: Option<String>,
    #[serde(default)]
    pub limit: Limit,
}

/// Which page of an attempt's artifacts.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ArtifactPage {
    /// From the page before.
    pub cursor: Option<String>,
    #[serde(default)]
    pub limit: Limit,
}

/// Where a reader of the feed stands.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct FeedPosition {
    /// The last revision that the reader has; 0 or absent from the start.
    #[param(minimum = 0)]
    pub after: Option<u64>,
    #[serde(default)]
    pub limit: Limit,
    /// Wait so long for a first event; at most 30.
    #[param(maximum = 30)]
    pub wait_seconds: Option<u32>,
}
