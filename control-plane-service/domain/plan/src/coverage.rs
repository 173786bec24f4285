//! What a gate covers: every node behind it. An approval binds to the digest of exactly that.

use std::collections::{BTreeSet, HashMap};

use kernel::{CanonicalError, Sha256Digest, canonical_digest};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Claim, Lane, Plan, PlanNode, ScenarioPin, SlotBinding};

/// Ids of all nodes that need `gate`, directly or through others.
#[must_use]
pub fn covered_by(plan: &Plan, gate: &str) -> BTreeSet<String> {
    let mut dependents: HashMap<&str, Vec<&str>> = HashMap::new();
    for node in &plan.nodes {
        for need in &node.needs {
            dependents.entry(need.node.as_str()).or_default().push(node.id.as_str());
        }
    }
    let mut covered = BTreeSet::new();
    let mut open = vec![gate];
    while let Some(id) = open.pop() {
        for dependent in dependents.get(id).into_iter().flatten() {
            if covered.insert((*dependent).to_owned()) {
                open.push(dependent);
            }
        }
    }
    covered
}

#[derive(Serialize)]
struct Covered<'a> {
    scenario: &'a ScenarioPin,
    environment: &'a str,
    parameters: &'a Map<String, Value>,
    slots: &'a [SlotBinding],
    claims: &'a [Claim],
    gate: &'a PlanNode,
    nodes: Vec<&'a PlanNode>,
    lanes: Vec<&'a Lane>,
}

/// The digest that an approval of `gate` binds to: pack, parameters, bindings, claims, the gate itself
/// and every node and lane behind it. `None` when there is no such node.
///
/// # Errors
/// When a value in the plan does not survive canonical JSON.
pub fn gate_digest(plan: &Plan, gate: &str) -> Result<Option<Sha256Digest>, CanonicalError> {
    let Some(gate_node) = plan.node(gate) else {
        return Ok(None);
    };
    let ids = covered_by(plan, gate);
    let nodes: Vec<&PlanNode> = plan.nodes.iter().filter(|node| ids.contains(&node.id)).collect();
    let lanes = plan
        .lanes
        .iter()
        .filter(|lane| nodes.iter().any(|node| node.lane.as_deref() == Some(&lane.id)))
        .collect();
    canonical_digest(&Covered {
        scenario: &plan.scenario,
        environment: &plan.environment,
        parameters: &plan.parameters,
        slots: &plan.slots,
        claims: &plan.claims,
        gate: gate_node,
        nodes,
        lanes,
    })
    .map(Some)
}
