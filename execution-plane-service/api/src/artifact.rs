//! Artifacts: uploaded by a runner, stored by digest, named within their operation.

use contracts::{ArtifactRef, Sensitivity};
use kernel::Sha256Digest;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// `PUT /v1/runner/attempts/{id}/artifacts/{name}`: the body is the bytes; they are verified
/// against `sha256`. A repeat with the same digest answers the same [`ArtifactRef`]; another digest
/// under the same name is 409.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ArtifactUploadQuery {
    pub epoch: u64,
    /// The artifact's type, an open set (`diagnostics_bundle`, ...).
    #[serde(rename = "type")]
    pub artifact_type: String,
    /// `secret` is refused until a secret store takes it (422 `secret_artifacts_unavailable`).
    pub sensitivity: Sensitivity,
    pub sha256: Sha256Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
}

/// Query of the runner's reads, which need the lease too: `GET /v1/runner/attempts/{id}/content` (the
/// bundle) and `GET /v1/runner/attempts/{id}/inputs/{name}` (the bytes of the input artifact
/// `artifact://operation/{name}`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RunnerArtifactQuery {
    /// Of the lease; without it nothing is the caller's.
    #[serde(default)]
    pub epoch: u64,
}

/// `GET /v1/attempts/{id}/artifacts`: one page, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactList {
    pub items: Vec<ArtifactRef>,
    /// Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The head of the feed before the first page: what changes after it is in the feed from here on.
    pub revision: i64,
}

/// Paging of `GET /v1/attempts/{id}/artifacts`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ArtifactListQuery {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// At most 1,000; 100 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}
