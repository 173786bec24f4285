//! The plan: the immutable value that is previewed, digested, approved and carried out.
//!
//! Invariants: a plan is plain data with one canonical form (RFC 8785), so equal inputs give equal
//! bytes; nothing in it depends on ids, times, estimates or freshness. What is only advice lives in
//! [`Advice`], outside the digest. Planning writes plans, operations read them; neither knows the other.

mod advice;
mod binding;
mod coverage;
mod document;
mod node;

pub use advice::{Advice, BlastRadius, CandidateRefusal, Estimate, Freshness, SlotExplanation};
pub use binding::{BoundResource, Claim, ClaimMode, SlotBinding};
pub use coverage::{covered_by, gate_digest};
pub use document::{PlanDocument, PlanError};
pub use node::{
    Accept, Gate, GateClaims, GateExpiry, Item, Job, Lane, LaneItem, Need, NodeKind, OnFailure, PlanNode,
    ResourceUpdate, RetryPolicy,
};

use kernel::Sha256Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Which published template a plan was made from. Published versions are immutable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScenarioPin {
    pub pack: String,
    pub pack_version: String,
    /// Digest of the whole pack.
    pub pack_digest: Sha256Digest,
    /// Digest of the content archive that jobs use; absent when the pack has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_digest: Option<Sha256Digest>,
    pub template: String,
}

/// A capability that a resource gains or loses when the plan is carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CapabilityChange {
    pub resource_id: kernel::ResourceId,
    pub node: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<kernel::DottedName>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<kernel::DottedName>,
}

/// Everything that is digested, approved and carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// Version of this shape; 1.
    pub format: u32,
    pub scenario: ScenarioPin,
    pub environment: String,
    #[schema(value_type = Object)]
    pub parameters: Map<String, Value>,
    /// Sorted by slot name.
    pub slots: Vec<SlotBinding>,
    /// In a topological order; among equals by id.
    pub nodes: Vec<PlanNode>,
    /// Sorted by id.
    pub lanes: Vec<Lane>,
    /// Sorted by uid: the order in which claims are taken.
    pub claims: Vec<Claim>,
    pub capability_changes: Vec<CapabilityChange>,
    /// Ids of nodes that destroy something.
    pub destructive: Vec<String>,
}

impl Plan {
    /// The node with this id.
    #[must_use]
    pub fn node(&self, id: &str) -> Option<&PlanNode> {
        self.nodes.iter().find(|node| node.id == id)
    }
}
