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

/// `GET /v1/attempts/{id}/artifacts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactList {
    pub items: Vec<ArtifactRef>,
}
