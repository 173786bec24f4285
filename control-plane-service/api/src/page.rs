use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{NodeRunState, OperationState};

/// A page of any list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// `next_cursor` of the page before.
    #[serde(default)]
    pub cursor: Option<String>,
    /// At most 1,000; 100 when absent.
    #[serde(default)]
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
}

/// `GET /v1/operations`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListOperationsQuery {
    #[serde(default)]
    pub cursor: Option<String>,
    #[serde(default)]
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
    /// Only those in this state.
    #[serde(default)]
    #[param(inline)]
    pub state: Option<OperationState>,
    /// Only those of this template, as `PACK/TEMPLATE`.
    #[serde(default)]
    pub template: Option<String>,
    #[serde(default)]
    pub environment: Option<String>,
    /// A label selector: `team=web,tier in (a,b)`.
    #[serde(default)]
    pub selector: Option<String>,
}

/// `GET /v1/operations/{id}/node-runs`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListNodeRunsQuery {
    #[serde(default)]
    pub cursor: Option<String>,
    #[serde(default)]
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
    #[serde(default)]
    #[param(inline)]
    pub state: Option<NodeRunState>,
}

/// `GET /v1/operations/{id}/events`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListEventsQuery {
    #[serde(default)]
    pub cursor: Option<String>,
    #[serde(default)]
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
}
