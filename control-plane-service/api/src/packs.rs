use chrono::{DateTime, Utc};
use kernel::Sha256Digest;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A published pack version. Immutable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PackView {
    pub name: String,
    pub version: String,
    /// Over path, content and mode of every file; whatever archive they came in.
    pub digest: Sha256Digest,
    /// Over the content archive that jobs use; absent when the pack has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_digest: Option<Sha256Digest>,
    /// When execution-plane had the content; absent while it has not, or when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_delivered_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub description: String,
    pub templates: Vec<String>,
    pub published_at: DateTime<Utc>,
    pub published_by: String,
}

/// A page of packs, by name and version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PackPage {
    pub items: Vec<PackView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The head of the feed before the first page: a watch from here misses nothing.
    pub revision: i64,
}

/// One fault of a pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PackFault {
    /// Path inside the pack.
    pub file: String,
    /// From 1; 0 stands for the file as a whole.
    pub line: u32,
    #[serde(default)]
    pub column: u32,
    pub code: String,
    pub detail: String,
    /// What to do about it.
    #[serde(default)]
    pub remedy: String,
}

/// `POST /v1/packs/validate`: every fault, with its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PackValidation {
    pub valid: bool,
    pub faults: Vec<PackFault>,
}
