//! Whether every lane can be walked to its end. Items open in order and only so many at once, so a
//! plan whose edges point against that order would stand still for ever: it is refused on load.

use control_plane_plan::Plan;

use crate::index::{IndexError, IndexedLane, IndexedNode};

/// Checks that needs and lane order together have no cycle. Every item gets two marks beside its nodes:
/// *may open* (which waits for the item before it to be openable, for what the item's nodes need from
/// outside, and for the item that must close to make room) and *closed* (all nodes ended).
pub(crate) fn check(plan: &Plan, nodes: &[IndexedNode], lanes: &[IndexedLane]) -> Result<(), IndexError> {
    let mut graph = Graph::new(nodes.len());
    for (ix, node) in nodes.iter().enumerate() {
        for need in &node.needs {
            graph.after(ix, need.node);
        }
    }
    let mut marks = Vec::new();
    for lane in lanes {
        let first = graph.len();
        add_lane(&mut graph, nodes, lane);
        marks.push(first..graph.len());
    }
    let stuck = graph.stuck();
    let lane = marks.iter().position(|range| range.clone().any(|mark| stuck[mark]));
    match lane {
        Some(lane) => Err(IndexError::LaneDeadlock(plan.lanes[lane].id.clone())),
        None => Ok(()),
    }
}

fn add_lane(graph: &mut Graph, nodes: &[IndexedNode], lane: &IndexedLane) {
    let mut openings = Vec::with_capacity(lane.items.len());
    let mut closings = Vec::with_capacity(lane.items.len());
    for (item_ix, members) in lane.items.iter().enumerate() {
        let (opening, closing) = (graph.add(), graph.add());
        if let Some(previous) = openings.last() {
            graph.after(opening, *previous);
        }
        if let Some(room) = item_ix.checked_sub(lane.max_parallel) {
            graph.after(opening, closings[room]);
        }
        let place = members.first().and_then(|member| nodes[*member].lane);
        for member in members {
            graph.after(*member, opening);
            graph.after(closing, *member);
            let inside = |need: usize| nodes[need].lane == place;
            let is_head = !nodes[*member].needs.iter().any(|need| inside(need.node));
            if is_head {
                for need in &nodes[*member].needs {
                    graph.after(opening, need.node);
                }
            }
        }
        openings.push(opening);
        closings.push(closing);
    }
}

/// "a after b" edges, sorted by Kahn's algorithm.
struct Graph {
    followers: Vec<Vec<usize>>,
    waits: Vec<usize>,
}

impl Graph {
    fn new(len: usize) -> Self {
        Self {
            followers: vec![Vec::new(); len],
            waits: vec![0; len],
        }
    }

    fn len(&self) -> usize {
        self.waits.len()
    }

    fn add(&mut self) -> usize {
        self.followers.push(Vec::new());
        self.waits.push(0);
        self.waits.len() - 1
    }

    fn after(&mut self, later: usize, earlier: usize) {
        self.followers[earlier].push(later);
        self.waits[later] += 1;
    }

    /// Which vertices lie on, or behind, a cycle.
    fn stuck(mut self) -> Vec<bool> {
        let mut open: Vec<usize> = (0..self.waits.len()).filter(|v| self.waits[*v] == 0).collect();
        while let Some(vertex) = open.pop() {
            for follower in core::mem::take(&mut self.followers[vertex]) {
                self.waits[follower] -= 1;
                if self.waits[follower] == 0 {
                    open.push(follower);
                }
            }
        }
        self.waits.iter().map(|waits| *waits > 0).collect()
    }
}
