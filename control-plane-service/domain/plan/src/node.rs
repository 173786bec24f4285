use std::collections::BTreeMap;

use contracts::{ExitCategory, Isolation, JobType, OutputContract, SecretInput};
use kernel::id::ResourceUid;
use kernel::{DottedName, ResourceId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// An end of a needed node that lets the dependent run. Ends are told apart: a cancelled or lost
/// parent is not a failed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Accept {
    Succeeded,
    Failed,
    TimedOut,
    Skipped,
    Cancelled,
    Lost,
}

/// An edge of the plan: this node waits for `node` and runs only if it ended in one of `accept`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Need {
    pub node: String,
    /// Sorted, never empty; `[succeeded]` unless the template says otherwise.
    pub accept: Vec<Accept>,
}

/// The element of a fan-out that an item node stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Item {
    /// Position in the fan-out, from 0.
    pub index: u32,
    /// The resource id of the slot's resource, or the list element's text.
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<ResourceUid>,
    /// The list element itself, for a `for_each` over a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub value: Option<Value>,
}

/// What happens to the operation when a node fails for good.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Nothing further starts; the run ends failed.
    #[default]
    Fail,
    /// Dependents that accept the failure go on; the operation still reads "failed, handled".
    Continue,
    /// The operation waits for an operator with a menu instead of failing.
    Hold,
}

/// When and how often a failed job gets another attempt without an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RetryPolicy {
    /// The reference it was resolved from, for example `retry/default`.
    pub name: String,
    /// Attempts in all, at least 1.
    pub max_attempts: u32,
    pub backoff_seconds: u32,
    pub backoff_max_seconds: u32,
    /// Exit categories that are worth another attempt. A job that may have started and is not
    /// idempotent is never retried blindly, whatever this says.
    pub on: Vec<ExitCategory>,
}

/// A job for execution-plane.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    pub job_type: JobType,
    pub runner: String,
    pub isolation: Isolation,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub runner_labels: BTreeMap<String, String>,
    /// Bound resources that the job acts on, in binding order.
    pub targets: Vec<ResourceUid>,
    /// `inputs.parameters` of the JobSpec; values at the pointers in `deferred` are filled at dispatch.
    #[schema(value_type = Object)]
    pub parameters: Map<String, Value>,
    /// JSON Pointer into `parameters` → CEL expression over earlier outputs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deferred: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<DottedName>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretInput>,
    pub output_contract: OutputContract,
    pub timeout_seconds: u32,
    pub retry: RetryPolicy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_commands_ref: Option<String>,
    /// Running it twice is the same as running it once.
    pub idempotent: bool,
    /// It changes something in the world.
    pub mutating: bool,
    /// The pack's content archive travels with the job.
    pub with_content: bool,
}

/// What an expired gate means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateExpiry {
    #[default]
    Deny,
}

/// What a waiting gate does with the operation's claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateClaims {
    Hold,
    /// Let go while waiting; on return they are taken again and every pin is checked, a moved one
    /// voids the approval.
    Release,
}

/// An approval by a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Gate {
    /// The role that may decide.
    pub role: String,
    /// Whether the one who asked for the operation may not decide.
    pub requester_excluded: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_after_seconds: Option<u32>,
    pub on_expiry: GateExpiry,
    pub claims: GateClaims,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A final update of one resource at the catalog.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResourceUpdate {
    pub uid: ResourceUid,
    pub resource_id: ResourceId,
    /// As in the contract; `attributes` and `observed_state_patch` may hold deferred expressions.
    pub changes: contracts::Changes,
    /// JSON Pointer into `changes` → CEL expression over earlier outputs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deferred: BTreeMap<String, String>,
    /// Nodes whose passed evidence is sent along; of a fan-out over the same slot, only this item's.
    pub evidence_from: Vec<String>,
}

/// What a node does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum NodeKind {
    Job(Job),
    Gate(Gate),
    ResourceUpdate(ResourceUpdate),
    /// Stands for a fan-out as a whole: ends when all its item nodes have ended; skipped when they are
    /// all skipped or there are none. Others need it to wait for the whole fan-out.
    Join,
}

/// One node of the DAG. A fan-out is expanded: item nodes `ID[KEY]` and one join node `ID`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanNode {
    /// Unique in the plan: the template's node id, with `[KEY]` for an item.
    pub id: String,
    /// The node's id in the template.
    pub template_node: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<Item>,
    /// The lane that an item node runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    pub needs: Vec<Need>,
    /// A condition that could not be decided while planning (CEL over earlier outputs).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// A condition decided while planning was false: the node is skipped.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub skipped: bool,
    pub on_failure: OnFailure,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub destructive: bool,
    pub action: NodeKind,
}

/// One element of a lane: its nodes in plan order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LaneItem {
    pub key: String,
    pub nodes: Vec<String>,
}

/// Fan-outs that advance together, item by item: an item is open from the start of its first node
/// until its last has ended; at most `max_parallel` items are open, in order; after more than
/// `max_failures` failed items no further item opens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lane {
    pub id: String,
    pub max_parallel: u32,
    pub max_failures: u32,
    pub items: Vec<LaneItem>,
}
