//! A template: what can be done, read and checked, ready for planning.
//!
//! Invariants (planning relies on them): every name that is referred to exists; `needs` has no cycle;
//! `each: same` joins only fan-outs over the same thing; every expression parses and reads only what is
//! in its scope; `nodes` is read of upstream nodes only; parameters of jobs fit their job type's schema as
//! far as they are fixed.

use std::collections::BTreeMap;
use std::sync::Arc;

use contracts::{HealthStatus, Isolation, JobType, LifecycleStatus, OutputContract, SecretDelivery};
use control_plane_plan::{Accept, ClaimMode, GateClaims, OnFailure, RetryPolicy};
use kernel::{DottedName, Selector, VersionRequirement};
use serde_json::Value;

use crate::dynamic::Dynamic;
use crate::expression::Expression;

/// One template of a pack.
#[derive(Debug, Clone)]
pub struct Template {
    pub name: String,
    pub title: String,
    pub description: String,
    pub parameters: BTreeMap<String, Parameter>,
    /// By slot name.
    pub requirements: BTreeMap<String, Requirement>,
    pub lanes: BTreeMap<String, LaneSpec>,
    /// In a topological order of their needs; among equals by id.
    pub nodes: Vec<NodeSpec>,
    pub provides: Vec<Provided>,
    pub risk: Vec<String>,
    /// Those of the pack and the built-in ones, by reference.
    pub retry_policies: BTreeMap<String, RetryPolicy>,
}

impl Template {
    /// The node with this id.
    #[must_use]
    pub fn node(&self, id: &str) -> Option<&NodeSpec> {
        self.nodes.iter().find(|node| node.id == id)
    }
}

/// A typed parameter.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// JSON Schema (draft 2020-12).
    pub schema: Value,
    pub(crate) validator: Arc<jsonschema::Validator>,
    /// Absent: the parameter must be given.
    pub default: Option<Value>,
    pub description: String,
    /// Hints for a form: `label`, `help`, `order`, `widget`, `group`.
    pub ui: Value,
}

/// How many resources a slot binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// At least so many.
    pub min: u32,
    /// At most so many; `None` takes all that fit.
    pub max: Option<u32>,
}

/// A slot: what resources an operation needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Requirement {
    pub slot: String,
    pub description: String,
    /// Derived types count.
    pub resource_type: DottedName,
    /// Where another environment than the plan's is meant.
    pub environment: Option<Dynamic>,
    pub count: Count,
    pub capabilities: Vec<CapabilityConstraint>,
    pub selector: Option<Dynamic>,
    pub lifecycle: Vec<LifecycleStatus>,
    /// Empty: any.
    pub health: Vec<HealthStatus>,
    /// Whether it must be known how to reach it.
    pub connection: bool,
    /// No two in the same place.
    pub distinct: Option<Topology>,
    /// All in the same place.
    pub same: Option<Topology>,
    /// Joined to what another slot binds.
    pub relation: Option<Relation>,
    /// Over `resource`, `parameters` and `environment`.
    pub condition: Option<Expression>,
    pub must_not: MustNot,
    /// Highest sum of weights first.
    pub prefer: Vec<Preference>,
    pub claim: ClaimMode,
}

impl Requirement {
    /// The capabilities that matching and jobs read of a resource of this slot, sorted.
    #[must_use]
    pub fn capabilities_read(&self) -> Vec<DottedName> {
        let mut names: Vec<DottedName> = self
            .capabilities
            .iter()
            .map(|constraint| constraint.capability.clone())
            .chain(self.must_not.capabilities.iter().cloned())
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

/// A capability that must be provided.
#[derive(Debug, Clone, PartialEq)]
pub struct CapabilityConstraint {
    pub capability: DottedName,
    /// A range for its attribute `version`.
    pub version: Option<VersionRequirement>,
    /// Over `attributes`, `parameters` and `environment`.
    pub condition: Option<Expression>,
}

/// Where a resource is: the first resource of `place_type` (derived types count) that is reached by
/// following `edges`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    pub edges: Vec<String>,
    pub place_type: DottedName,
}

/// An edge to the one resource that another slot binds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    pub edge: String,
    pub slot: String,
}

/// What refuses a resource.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MustNot {
    pub capabilities: Vec<DottedName>,
    pub selector: Option<Selector>,
    pub condition: Option<Expression>,
}

/// What makes a resource a better choice.
#[derive(Debug, Clone, PartialEq)]
pub struct Preference {
    pub selector: Option<Selector>,
    pub condition: Option<Expression>,
    pub weight: u32,
}

/// Fan-outs that advance together, item by item.
#[derive(Debug, Clone, PartialEq)]
pub struct LaneSpec {
    pub over: Over,
    pub max_parallel: u32,
    pub max_failures: u32,
}

/// What a fan-out runs over.
#[derive(Debug, Clone, PartialEq)]
pub enum Over {
    Slot(String),
    /// Gives a list once evaluated.
    List(Dynamic),
}

/// A node of a template.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSpec {
    pub id: String,
    pub title: Option<Dynamic>,
    pub needs: Vec<NeedSpec>,
    pub when: Option<Expression>,
    pub for_each: Option<ForEach>,
    pub on_failure: OnFailure,
    pub destructive: bool,
    pub action: Action,
}

/// An edge between template nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeedSpec {
    pub node: String,
    /// Sorted, never empty.
    pub accept: Vec<Accept>,
    /// Item by item instead of a barrier.
    pub each_same: bool,
}

/// A fan-out.
#[derive(Debug, Clone, PartialEq)]
pub struct ForEach {
    pub over: Over,
    pub lane: Option<String>,
    /// Of a fan-out without a named lane.
    pub max_parallel: Option<u32>,
    pub max_failures: Option<u32>,
}

/// What a node does.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    Job(Box<JobTemplate>),
    Gate(GateTemplate),
    ResourceUpdate(Box<UpdateTemplate>),
}

/// Whom a job acts on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Targets {
    /// The fan-out's item, a resource.
    Item,
    /// Everything that these slots bind.
    Slots(Vec<String>),
    /// Nothing: only verification may.
    Nothing,
}

/// A job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobTemplate {
    pub job_type: JobType,
    pub runner: String,
    pub isolation: Isolation,
    pub runner_labels: BTreeMap<String, String>,
    pub targets: Targets,
    pub parameters: Dynamic,
    pub capabilities: Vec<DottedName>,
    pub artifacts: Vec<Dynamic>,
    pub secrets: Vec<SecretTemplate>,
    pub output_contract: OutputContract,
    pub timeout_seconds: u32,
    /// A key of [`Template::retry_policies`].
    pub retry: String,
    pub allowed_commands_ref: Option<String>,
    pub idempotent: bool,
    pub mutating: bool,
    pub with_content: bool,
}

/// A secret, by reference.
#[derive(Debug, Clone, PartialEq)]
pub struct SecretTemplate {
    /// Text that reads as a secret reference once resolved.
    pub secret_ref: Dynamic,
    pub delivery: Option<SecretDelivery>,
    pub name: Option<String>,
}

/// An approval.
#[derive(Debug, Clone, PartialEq)]
pub struct GateTemplate {
    pub role: String,
    pub requester_excluded: bool,
    pub expires_after_seconds: Option<u32>,
    /// Absent: let go before the first mutating node, held after it.
    pub claims: Option<GateClaims>,
    pub message: Option<Dynamic>,
}

/// A final update of a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateTemplate {
    /// The slot whose one resource is meant; absent: the fan-out's item.
    pub slot: Option<String>,
    pub lifecycle_status: Option<LifecycleStatus>,
    pub health_status: Option<HealthStatus>,
    pub observed_state_patch: Option<Dynamic>,
    pub add: Vec<DottedName>,
    pub remove: Vec<DottedName>,
    /// Capability → its attributes.
    pub attributes: BTreeMap<String, Dynamic>,
    /// Ids of job nodes.
    pub evidence_from: Vec<String>,
}

/// A capability that resources of a slot have afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provided {
    pub slot: String,
    pub capability: DottedName,
}
