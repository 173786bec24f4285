//! What a preview tells beside the plan itself. None of it is digested.

use chrono::{DateTime, Utc};
use kernel::{DottedName, ResourceId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why one candidate was not bound: the first constraint it does not meet, and what it has instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CandidateRefusal {
    pub resource_id: ResourceId,
    /// The constraint as the template states it, for example `capability os.linux >=6.1`.
    pub constraint: String,
    /// What stands in its way, for example `has os.linux 5.10.0-28`.
    pub found: String,
    /// The smallest change that would make it a candidate, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// How one slot was bound, or why it could not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlotExplanation {
    pub slot: String,
    pub requirement: String,
    pub satisfied: bool,
    pub bound: Vec<ResourceId>,
    pub candidates_considered: u64,
    /// Constraint → how many candidates it refused, most first.
    pub refused_by: Vec<(String, u64)>,
    /// The first hundred refused candidates, by resource id.
    pub refusals: Vec<CandidateRefusal>,
    /// Why the slot as a whole is unsatisfied, and the smallest change that would satisfy it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// How fresh the projection was that a plan was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Freshness {
    /// The catalog revision that the projection had applied.
    pub revision: i64,
    pub applied_at: Option<DateTime<Utc>>,
    /// Revisions known to be still unapplied.
    pub lag_revisions: i64,
}

/// What else may feel the operation, by topology.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlastRadius {
    /// Resources that the operation changes.
    pub direct: Vec<ResourceId>,
    /// Resources that depend on those, within three hops.
    pub dependents: Vec<ResourceId>,
    pub resource_types: Vec<(DottedName, u64)>,
    /// Whether a bound of hops or size cut the search.
    pub partial: bool,
}

/// How long it will take, without the time that people take at gates: from the last runs of the template in
/// the organization; absent where they do not tell, and beside an operation that was begun without a preview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Estimate {
    pub seconds: u64,
    /// How many earlier operations it rests on.
    pub samples: u64,
}

/// Everything that a preview says beside the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Advice {
    pub slots: Vec<SlotExplanation>,
    pub freshness: Freshness,
    pub blast_radius: BlastRadius,
    /// What the template says about its risk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risk: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
}
