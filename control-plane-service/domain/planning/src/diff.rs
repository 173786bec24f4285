//! What changed between two plans, and which approvals that voids.

use std::collections::BTreeMap;

use control_plane_plan::{NodeKind, Plan, PlanNode, gate_digest};
use kernel::{CanonicalError, Sha256Digest};
use serde::Serialize;
use serde_json::Value;

/// The difference between two plans.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PlanDiff {
    /// Names of parameters whose value changed.
    pub parameters: Vec<String>,
    /// Slots whose bindings changed.
    pub slots: Vec<String>,
    pub added: Vec<String>,
    pub removed: Vec<String>,
    pub changed: Vec<NodeChange>,
    /// Gates that cover something else than before: what was approved there is to be approved again.
    pub gates: Vec<GateChange>,
}

/// A node that is in both plans and not the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeChange {
    pub node: String,
    /// JSON Pointers of what differs, at most 50.
    pub fields: Vec<String>,
}

/// A gate whose digest changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GateChange {
    pub gate: String,
    pub before: Sha256Digest,
    pub after: Sha256Digest,
}

impl PlanDiff {
    /// Whether the plans are the same.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

const MAX_FIELDS: usize = 50;

/// Compares two plans of one scenario.
///
/// # Errors
/// When a plan has no canonical form; a sealed one has.
pub fn diff(before: &Plan, after: &Plan) -> Result<PlanDiff, CanonicalError> {
    let mut difference = PlanDiff {
        parameters: differing_keys(&before.parameters, &after.parameters),
        ..PlanDiff::default()
    };
    for slot in &after.slots {
        if before.slots.iter().find(|other| other.slot == slot.slot) != Some(slot) {
            difference.slots.push(slot.slot.clone());
        }
    }
    let old: BTreeMap<&str, &PlanNode> = before.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let new: BTreeMap<&str, &PlanNode> = after.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    difference.removed = old
        .keys()
        .filter(|id| !new.contains_key(*id))
        .map(|id| (*id).to_owned())
        .collect();
    for (id, node) in &new {
        let Some(earlier) = old.get(id) else {
            difference.added.push((*id).to_owned());
            continue;
        };
        if earlier != node {
            difference.changed.push(NodeChange {
                node: (*id).to_owned(),
                fields: differing_fields(earlier, node)?,
            });
        }
        if let (NodeKind::Gate(_), NodeKind::Gate(_)) = (&earlier.action, &node.action) {
            let digests = (gate_digest(before, id)?, gate_digest(after, id)?);
            if let (Some(before), Some(after)) = digests
                && before != after
            {
                difference.gates.push(GateChange {
                    gate: (*id).to_owned(),
                    before,
                    after,
                });
            }
        }
    }
    Ok(difference)
}

fn differing_keys(before: &serde_json::Map<String, Value>, after: &serde_json::Map<String, Value>) -> Vec<String> {
    let mut keys: Vec<String> = before.keys().chain(after.keys()).cloned().collect();
    keys.sort();
    keys.dedup();
    keys.retain(|key| before.get(key) != after.get(key));
    keys
}

fn differing_fields(before: &PlanNode, after: &PlanNode) -> Result<Vec<String>, CanonicalError> {
    let as_json =
        |node: &PlanNode| serde_json::to_value(node).map_err(|error| CanonicalError::Unserializable(error.to_string()));
    let mut fields = Vec::new();
    walk(Some(&as_json(before)?), Some(&as_json(after)?), "", &mut fields);
    fields.truncate(MAX_FIELDS);
    Ok(fields)
}

fn walk(before: Option<&Value>, after: Option<&Value>, pointer: &str, fields: &mut Vec<String>) {
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            for key in differing_keys(before, after) {
                let below = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
                walk(before.get(&key), after.get(&key), &below, fields);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) if before.len() == after.len() => {
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                walk(Some(before), Some(after), &format!("{pointer}/{index}"), fields);
            }
        }
        (before, after) if before != after => fields.push(pointer.to_owned()),
        _ => {}
    }
}
