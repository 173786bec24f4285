//! Which gates a node is behind: all those from which a path leads to it, but for a path that begins with
//! the declared handling of the gate's rejection.

use std::collections::{BTreeSet, HashMap};

use control_plane_plan::{Accept, NodeKind, Plan, PlanNode};

/// The gates that must have let pass before `node` may run. Empty for a node that the plan does not have.
pub(crate) fn before<'p>(plan: &'p Plan, node: &str) -> BTreeSet<&'p str> {
    let nodes: HashMap<&str, &PlanNode> = plan.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let mut seen = BTreeSet::new();
    let mut gates = BTreeSet::new();
    let mut open: Vec<&PlanNode> = nodes.get(node).copied().into_iter().collect();
    while let Some(at) = open.pop() {
        for need in &at.needs {
            let Some(needed) = nodes.get(need.node.as_str()).copied() else {
                continue;
            };
            let is_gate = matches!(needed.action, NodeKind::Gate(_));
            if is_gate && !need.accept.contains(&Accept::Failed) {
                gates.insert(needed.id.as_str());
            }
            if seen.insert(needed.id.as_str()) {
                open.push(needed);
            }
        }
    }
    gates
}
