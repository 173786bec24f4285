use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `GET /v1/operations/{id}/proof`: the signed chain from every provided capability down to plan and
/// pack, as one document that verifies offline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = Object)]
pub struct ProofExport(pub serde_json::Value);
