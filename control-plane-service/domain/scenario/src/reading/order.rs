//! The order of a template's nodes, and what only the whole graph can tell.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::scope::NodeReferences;
use crate::fault::{FaultCode, Faults, Position};
use crate::template::{NodeSpec, Over};
use crate::yaml::Node;

/// The nodes in a topological order, among equals by id. `None` when they go in a circle.
pub(super) fn sorted(
    nodes: Vec<NodeSpec>,
    written: &[Node],
    references: &NodeReferences,
    faults: &Faults,
) -> Option<Vec<NodeSpec>> {
    let places = Places(written);
    let by_id: BTreeMap<&str, &NodeSpec> = nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    for node in &nodes {
        check_same(node, &by_id, &places, faults);
    }
    let Some(order) = topological(&by_id) else {
        report_circle(&by_id, &places, faults);
        return None;
    };
    check_references(&by_id, &order, references, faults);
    let rank: HashMap<String, usize> = order
        .iter()
        .enumerate()
        .map(|(rank, id)| ((*id).to_owned(), rank))
        .collect();
    let mut nodes = nodes;
    nodes.sort_by_key(|node| rank.get(&node.id).copied());
    Some(nodes)
}

struct Places<'n>(&'n [Node]);

impl Places<'_> {
    fn of(&self, id: &str, pointer: &str) -> Position {
        self.0
            .iter()
            .find(|node| node.to_json().get("id").and_then(|v| v.as_str()) == Some(id))
            .map_or_else(Position::default, |node| node.place_of(pointer))
    }
}

fn check_same(node: &NodeSpec, by_id: &BTreeMap<&str, &NodeSpec>, places: &Places<'_>, faults: &Faults) {
    let mine: Option<&Over> = node.for_each.as_ref().map(|f| &f.over);
    for (index, need) in node.needs.iter().enumerate().filter(|(_, need)| need.each_same) {
        let Some(other) = by_id.get(need.node.as_str()) else {
            continue;
        };
        if other.for_each.as_ref().map(|f| &f.over) != mine {
            faults.add(
                places.of(&node.id, &format!("/needs/{index}")),
                FaultCode::InvalidValue,
                format!("`each: same` needs `{}` to fan out over the same thing", need.node),
                "remove `each`, or let both run over one slot",
            );
        }
    }
}

fn topological<'a>(by_id: &BTreeMap<&'a str, &'a NodeSpec>) -> Option<Vec<&'a str>> {
    let mut open: BTreeMap<&str, usize> = BTreeMap::new();
    let mut dependents: BTreeMap<&str, Vec<&'a str>> = BTreeMap::new();
    for (id, node) in by_id {
        let needed: BTreeSet<&str> = needed(node, by_id).collect();
        open.insert(id, needed.len());
        for need in needed {
            dependents.entry(need).or_default().push(id);
        }
    }
    let mut ready: BTreeSet<&'a str> = by_id.keys().copied().filter(|id| open[id] == 0).collect();
    let mut order = Vec::new();
    while let Some(id) = ready.pop_first() {
        order.push(id);
        for dependent in dependents.get(id).into_iter().flatten() {
            if let Some(count) = open.get_mut(dependent) {
                *count -= 1;
                if *count == 0 {
                    ready.insert(dependent);
                }
            }
        }
    }
    (order.len() == by_id.len()).then_some(order)
}

fn needed<'a>(node: &'a NodeSpec, by_id: &BTreeMap<&'a str, &'a NodeSpec>) -> impl Iterator<Item = &'a str> + use<'a> {
    let known: BTreeSet<&str> = by_id.keys().copied().collect();
    node.needs
        .iter()
        .map(|need| need.node.as_str())
        .filter(move |id| known.contains(id))
}

/// Walks from any node that never becomes ready along its needs until one repeats.
fn report_circle(by_id: &BTreeMap<&str, &NodeSpec>, places: &Places<'_>, faults: &Faults) {
    let mut left: BTreeMap<&str, &NodeSpec> = by_id.clone();
    while let Some(done) = left
        .iter()
        .find(|(_, node)| !node.needs.iter().any(|need| left.contains_key(need.node.as_str())))
        .map(|(id, _)| *id)
    {
        left.remove(done);
    }
    while let Some(start) = left.keys().next().copied() {
        let mut path = vec![start];
        loop {
            let last = path[path.len() - 1];
            let next = left.get(last).and_then(|node| {
                node.needs
                    .iter()
                    .map(|n| n.node.as_str())
                    .find(|id| by_id.contains_key(id))
            });
            let Some(next) = next else { break };
            if let Some(first) = path.iter().position(|id| *id == next) {
                let circle = &path[first..];
                faults.add(
                    places.of(circle[0], "/needs"),
                    FaultCode::Cycle,
                    format!("nodes need each other in a circle: {} → {next}", circle.join(" → ")),
                    "remove one of these needs",
                );
                break;
            }
            path.push(next);
        }
        for id in path {
            left.remove(id);
        }
    }
}

/// Results may only be read of nodes that have certainly ended: upstream ones.
fn check_references(by_id: &BTreeMap<&str, &NodeSpec>, order: &[&str], references: &NodeReferences, faults: &Faults) {
    let mut upstream: HashMap<&str, BTreeSet<&str>> = HashMap::new();
    for id in order {
        let mut all = BTreeSet::new();
        for need in needed(by_id[id], by_id) {
            all.insert(need);
            all.extend(upstream.get(need).into_iter().flatten());
        }
        upstream.insert(id, all);
    }
    for (reader, read, at) in &references.0 {
        let known = upstream.get(reader.as_str());
        if known.is_some_and(|all| !all.contains(read.as_str())) {
            faults.add(
                *at,
                FaultCode::UnknownNode,
                format!("`{reader}` reads results of `{read}` and does not need it"),
                format!("add `{read}` to the node's `needs`"),
            );
        }
    }
}
