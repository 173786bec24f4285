//! The order of a plan's nodes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use control_plane_plan::PlanNode;

use crate::PlanningError;

/// The nodes in a topological order, among equals by id.
///
/// # Errors
/// When the needs go in a circle, name a node that is not there, or an id is there twice. A template that
/// was read cannot lead here; a plan that was edited could.
pub(crate) fn ordered(nodes: Vec<PlanNode>) -> Result<Vec<PlanNode>, PlanningError> {
    let mut index: HashMap<&str, usize> = HashMap::with_capacity(nodes.len());
    for (at, node) in nodes.iter().enumerate() {
        if index.insert(&node.id, at).is_some() {
            return Err(PlanningError::in_node(&node.id, "the id is there twice"));
        }
    }
    let mut open = vec![0_usize; nodes.len()];
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        for need in &node.needs {
            let Some(needed) = index.get(need.node.as_str()) else {
                let problem = format!("it needs `{}`, which is not there", need.node);
                return Err(PlanningError::in_node(&node.id, problem));
            };
            open[at] += 1;
            dependents[*needed].push(at);
        }
    }
    let mut ready: BinaryHeap<Reverse<(&str, usize)>> = BinaryHeap::new();
    for (at, node) in nodes.iter().enumerate().filter(|(at, _)| open[*at] == 0) {
        ready.push(Reverse((&node.id, at)));
    }
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse((_, at))) = ready.pop() {
        order.push(at);
        for dependent in &dependents[at] {
            open[*dependent] -= 1;
            if open[*dependent] == 0 {
                ready.push(Reverse((&nodes[*dependent].id, *dependent)));
            }
        }
    }
    if let Some(stuck) = open.iter().position(|count| *count > 0) {
        return Err(PlanningError::in_node(
            &nodes[stuck].id,
            "nodes need each other in a circle",
        ));
    }
    let mut nodes: Vec<Option<PlanNode>> = nodes.into_iter().map(Some).collect();
    Ok(order.into_iter().filter_map(|at| nodes[at].take()).collect())
}
