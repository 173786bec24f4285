use chrono::{DateTime, Utc};
use kernel::id::AttemptId;
use kernel::{DottedName, ResourceId, Sha256Digest};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// How evidence was gathered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceType {
    CommandCheck,
    ApiCheck,
    MetricCheck,
    LogCheck,
    HumanVerification,
}

/// What a check found. Only `passed` proves anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceResult {
    Passed,
    Failed,
    Inconclusive,
}

/// EvidenceRef: one observation about one capability, with the source it was read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EvidenceRef {
    pub id: Uuid,
    #[serde(rename = "type")]
    pub evidence_type: EvidenceType,
    pub capability: DottedName,
    pub result: EvidenceResult,
    /// The artifact or log that holds what was seen.
    pub source_ref: String,
    pub observed_at: DateTime<Utc>,
    /// Matched against `output_contract.evidence`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<ResourceId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<AttemptId>,
    /// SHA-256 of the source's bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256Digest>,
}
