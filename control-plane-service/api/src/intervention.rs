use contracts::EvidenceRef;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::Operation;

/// What really came of an outcome that was not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// It was done; evidence is required.
    Succeeded,
    Failed,
}

/// What an operator may do to an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Intervention {
    /// Nothing further starts; what runs ends by itself.
    Pause,
    /// Ends a pause.
    Resume,
    /// Tries again what failed, was skipped because of it, or is not known; never what succeeded. A failed
    /// operation opens its next run.
    Retry {
        /// Only these nodes and what depends on them; all unfinished ones when empty.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        nodes: Vec<String>,
        /// Changed parameters: the operation gets the next revision of its plan, and the gates that cover
        /// what changed are asked again.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        #[schema(value_type = Object)]
        set: Map<String, Value>,
    },
    /// Treats a failed or held node as skipped; dependents that accept that go on.
    Skip { node_id: String },
    /// Ends the operation once everything under way has ended.
    Cancel,
    /// Of a cancelling operation: what has not ended is declared unresolved, to be settled by hand.
    ForceCancel,
    /// Settles an outcome that was not known.
    Resolve {
        node_id: String,
        resolution: Resolution,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        evidence: Vec<EvidenceRef>,
    },
}

/// `POST /v1/operations/{id}/interventions`. Applied once, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct InterventionRequest {
    pub intervention: Intervention,
    /// For the record; required by `skip` and `resolve`. At most 2,000 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The operation's version that the operator saw; another one is a conflict. `If-Match` says the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<i64>,
}

/// What an intervention led to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InterventionOutcome {
    /// The operation as it is with the intervention applied.
    pub operation: Operation,
}
