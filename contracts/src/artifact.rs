use kernel::Sha256Digest;
use kernel::id::OperationId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// Where an artifact's bytes are. The embedded twins keep the same words and the same logical URIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactStorage {
    S3,
    Vault,
    InlineMetadata,
}

/// Who may see an artifact. A `secret` one is stored in Vault, never in S3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sensitivity {
    Public,
    Internal,
    Secret,
}

/// The node that produced an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProducedBy {
    pub operation_id: OperationId,
    pub plan_node_id: String,
}

/// ArtifactRef: metadata of one artifact; the bytes are elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactRef {
    pub id: Uuid,
    /// An open set; built in are `kubeconfig.admin`, `rendered_manifest`, `diagnostics_bundle` and `install_report`.
    #[serde(rename = "type")]
    pub artifact_type: String,
    pub storage: ArtifactStorage,
    /// For example `s3://aiops-artifacts/operations/OPERATION/FILE`.
    pub uri: String,
    pub sensitivity: Sensitivity,
    pub produced_by: ProducedBy,
    /// The name that an output contract asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
}

impl ArtifactRef {
    /// The artifact types that every deployment knows.
    pub const BUILT_IN_TYPES: [&'static str; 4] = [
        "kubeconfig.admin",
        "rendered_manifest",
        "diagnostics_bundle",
        "install_report",
    ];
}
