//! How long a plan will take, going by what its template's nodes took before.
//!
//! Invariants: it decides nothing and is in no digest. Gates take no time here: how long people take is not
//! foretold. A node that will run and of which nothing is known makes the whole unknown, rather than short.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, VecDeque};

use control_plane_plan::{Estimate, NodeKind, Plan, PlanNode};

/// What one node of a template took in one earlier run of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub template_node: String,
    /// Tells runs of the template apart.
    pub run: u128,
    pub seconds: f64,
}

/// The median of what each node took before, put together as the plan orders its nodes. `None` when nothing
/// is known of a node that will run.
#[must_use]
pub fn estimate(plan: &Plan, history: &[Sample]) -> Option<Estimate> {
    let medians = medians(history);
    let mut rests_on: BTreeSet<u128> = BTreeSet::new();
    let mut took = Vec::with_capacity(plan.nodes.len());
    for node in &plan.nodes {
        let known = medians.get(node.template_node.as_str());
        took.push(match known {
            _ if !takes_time(node) => 0.0,
            Some((seconds, runs)) => {
                rests_on.extend(runs);
                *seconds
            }
            // It has never run so far, and may not run this time either.
            None if node.when.is_some() => 0.0,
            None => return None,
        });
    }
    if rests_on.is_empty() {
        return None;
    }
    let seconds = Walk::new(plan, &took).end();
    Some(Estimate {
        seconds: seconds.ceil().max(0.0) as u64,
        samples: rests_on.len() as u64,
    })
}

fn takes_time(node: &PlanNode) -> bool {
    !node.skipped && matches!(node.action, NodeKind::Job(_) | NodeKind::ResourceUpdate(_))
}

fn medians(history: &[Sample]) -> BTreeMap<&str, (f64, BTreeSet<u128>)> {
    let mut samples: BTreeMap<&str, Vec<&Sample>> = BTreeMap::new();
    for sample in history.iter().filter(|sample| sample.seconds.is_finite()) {
        samples.entry(&sample.template_node).or_default().push(sample);
    }
    let median = |(node, mut samples): (_, Vec<&Sample>)| {
        samples.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let runs = samples.iter().map(|sample| sample.run).collect();
        (node, (samples[samples.len() / 2].seconds, runs))
    };
    samples.into_iter().map(median).collect()
}

/// A moment, ordered as numbers are.
#[derive(Debug, Clone, Copy, PartialEq)]
struct At(f64);

impl Eq for At {}

impl PartialOrd for At {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for At {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The plan carried out with every node taking the time that is foretold.
struct Walk<'a> {
    took: &'a [f64],
    dependents: Vec<Vec<usize>>,
    unmet: Vec<usize>,
    /// Lane and item of each node.
    places: Vec<Option<(usize, usize)>>,
    lanes: Vec<Lane>,
    now: f64,
    running: BinaryHeap<Reverse<(At, usize)>>,
    ready: VecDeque<usize>,
}

struct Lane {
    free: usize,
    next: usize,
    /// Of each item: whether it is open, how many nodes have not ended, and those that wait for it to open.
    items: Vec<(bool, usize, Vec<usize>)>,
}

impl<'a> Walk<'a> {
    fn new(plan: &Plan, took: &'a [f64]) -> Self {
        let names = plan.nodes.iter().enumerate();
        let by_id: HashMap<&str, usize> = names.map(|(ix, node)| (node.id.as_str(), ix)).collect();
        let mut dependents = vec![Vec::new(); plan.nodes.len()];
        let mut unmet = vec![0; plan.nodes.len()];
        for (ix, node) in plan.nodes.iter().enumerate() {
            for needed in node.needs.iter().filter_map(|need| by_id.get(need.node.as_str())) {
                dependents[*needed].push(ix);
                unmet[ix] += 1;
            }
        }
        let mut places = vec![None; plan.nodes.len()];
        let mut lanes = Vec::with_capacity(plan.lanes.len());
        for (lane_ix, lane) in plan.lanes.iter().enumerate() {
            let mut items = Vec::with_capacity(lane.items.len());
            for (item_ix, item) in lane.items.iter().enumerate() {
                for node in item.nodes.iter().filter_map(|id| by_id.get(id.as_str())) {
                    places[*node] = Some((lane_ix, item_ix));
                }
                items.push((false, item.nodes.len(), Vec::new()));
            }
            let free = lane.max_parallel.max(1) as usize;
            lanes.push(Lane { free, next: 0, items });
        }
        let ready = (0..unmet.len()).filter(|ix| unmet[*ix] == 0).collect();
        Self {
            took,
            dependents,
            unmet,
            places,
            lanes,
            now: 0.0,
            running: BinaryHeap::new(),
            ready,
        }
    }

    /// When the last node ends.
    fn end(mut self) -> f64 {
        loop {
            while let Some(ix) = self.ready.pop_front() {
                self.arrive(ix);
            }
            let Some(Reverse((At(at), ix))) = self.running.pop() else {
                return self.now;
            };
            self.now = at;
            self.ended(ix);
        }
    }

    fn arrive(&mut self, ix: usize) {
        let Some((lane_ix, item_ix)) = self.places[ix] else {
            return self.start(ix);
        };
        let (open, _, waiting) = &mut self.lanes[lane_ix].items[item_ix];
        if *open {
            return self.start(ix);
        }
        waiting.push(ix);
        self.open(lane_ix);
    }

    /// Opens the items whose turn it is, as long as there is room.
    fn open(&mut self, lane_ix: usize) {
        loop {
            let lane = &mut self.lanes[lane_ix];
            let Some((open, _, waiting)) = lane.items.get_mut(lane.next) else {
                return;
            };
            if lane.free == 0 || waiting.is_empty() {
                return;
            }
            *open = true;
            lane.free -= 1;
            lane.next += 1;
            for ix in core::mem::take(waiting) {
                self.start(ix);
            }
        }
    }

    fn start(&mut self, ix: usize) {
        self.running.push(Reverse((At(self.now + self.took[ix].max(0.0)), ix)));
    }

    fn ended(&mut self, ix: usize) {
        for dependent in core::mem::take(&mut self.dependents[ix]) {
            self.unmet[dependent] -= 1;
            if self.unmet[dependent] == 0 {
                self.ready.push_back(dependent);
            }
        }
        if let Some((lane_ix, item_ix)) = self.places[ix] {
            let lane = &mut self.lanes[lane_ix];
            lane.items[item_ix].1 -= 1;
            if lane.items[item_ix].1 == 0 {
                lane.free += 1;
                self.open(lane_ix);
            }
        }
    }
}
