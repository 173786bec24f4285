use contracts::{CatalogProjectionEvent, HealthStatus, LifecycleStatus};
use kernel::DottedName;
use kernel::id::OrganizationId;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::Resource;

/// Where to read the feed from, and how long to wait for something new.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct FeedQuery {
    /// The last revision that was read; 0 for the beginning.
    #[serde(default)]
    #[param(minimum = 0)]
    pub after: i64,
    /// Most revisions in the answer, at most 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
    /// How long to hold the request while there is nothing new, at most 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 0, maximum = 30)]
    pub wait_seconds: Option<u32>,
}

/// Events after a revision. A revision's events are never split over two answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FeedPage {
    pub events: Vec<CatalogProjectionEvent>,
    /// `after` of the next request.
    pub next_after: i64,
    /// The newest revision there is.
    pub head: i64,
}

/// Which changes to watch. An event of a resource that no longer fits is sent once more, as `selection.left`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct WatchQuery {
    /// Watch from after this revision; a `Last-Event-ID` header goes before it. Absent: from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 0)]
    pub after: Option<i64>,
    /// Resources of this type and of those derived from it.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<String>)]
    pub resource_type: Option<DottedName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// A label selector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<String>)]
    pub capability: Option<DottedName>,
    /// A range that the capability's attribute `version` must lie in: `>=1.28, <2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<LifecycleStatus>,
}

/// One line of `GET /v1/snapshot`. The stream is whole only when its last line is `end`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum SnapshotLine {
    /// First: the revision at which every line of this snapshot was true.
    Head {
        revision: i64,
        organization_id: OrganizationId,
    },
    /// Then every resource, by id.
    Resource { resource: Box<Resource> },
    /// Last: how many resources there were.
    End { resources: u64 },
}
