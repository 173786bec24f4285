use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A resource whose events are set aside because one of them could not be applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ParkedResource {
    /// The resource's id; of a fact that names none, `revision N`.
    pub resource_id: String,
    pub revision: i64,
    pub problem: String,
    pub since: DateTime<Utc>,
}

/// `POST /v1/projections/{name}/rebuild`: make a copy anew from a snapshot, while it is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RebuildRequest {
    /// Why, for the log; at most 500 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(max_length = 500)]
    pub reason: String,
}

/// How far the local copy of the catalog is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectionView {
    /// `catalog`.
    pub name: String,
    /// The last catalog revision applied.
    pub revision: i64,
    /// The last catalog revision heard of.
    pub head: i64,
    pub lag_revisions: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_at: Option<DateTime<Utc>>,
    pub resources: u64,
    /// Jumps over versions that were never seen.
    pub gaps: u64,
    /// When it was last made anew from a snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuilt_at: Option<DateTime<Utc>>,
    /// It is to be made anew from a snapshot, or is being so.
    #[serde(default)]
    pub rebuilding: bool,
    pub parked: Vec<ParkedResource>,
}

/// A page of projections, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectionPage {
    pub items: Vec<ProjectionView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The head of the feed before the first page: a watch from here misses nothing.
    pub revision: i64,
}
