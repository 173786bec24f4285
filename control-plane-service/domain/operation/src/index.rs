//! A plan revision made ready for deciding: names resolved to positions, edges reversed, gate digests
//! computed. Built once for a loaded plan and shared; no decision walks the plan again.
//!
//! Invariants: every need points backwards (plan order is topological), every lane can be walked to its
//! end, and the digest of a gate is that of exactly this revision.

use std::collections::HashMap;

use control_plane_plan::{Accept, BoundResource, Lane, NodeKind, Plan, PlanDocument, PlanNode, gate_digest};
use kernel::id::ResourceUid;
use kernel::{CanonicalError, Sha256Digest};

/// Position of a node in its plan revision.
pub(crate) type NodeIx = usize;

/// The ends of a needed node that let a dependent run, as a bit set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AcceptSet(u8);

impl AcceptSet {
    fn of(accept: &[Accept]) -> Self {
        Self(accept.iter().fold(0, |bits, end| bits | Self::bit(*end)))
    }

    const fn bit(end: Accept) -> u8 {
        match end {
            Accept::Succeeded => 1,
            Accept::Failed => 2,
            Accept::TimedOut => 4,
            Accept::Skipped => 8,
            Accept::Cancelled => 16,
            Accept::Lost => 32,
        }
    }

    pub(crate) const fn contains(self, end: Accept) -> bool {
        self.0 & Self::bit(end) != 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct IndexedNeed {
    pub(crate) node: NodeIx,
    pub(crate) accept: AcceptSet,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct IndexedNode {
    pub(crate) needs: Vec<IndexedNeed>,
    /// Nodes that need this one, with the position of that need in theirs.
    pub(crate) dependents: Vec<(NodeIx, usize)>,
    /// Lane and item that it belongs to.
    pub(crate) lane: Option<(usize, usize)>,
    /// Of a gate: what a decision binds to.
    pub(crate) digest: Option<Sha256Digest>,
    /// Of a join: its items.
    pub(crate) items: Vec<NodeIx>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IndexedLane {
    pub(crate) max_parallel: usize,
    pub(crate) max_failures: usize,
    pub(crate) items: Vec<Vec<NodeIx>>,
}

/// One plan revision, indexed.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanIndex {
    document: PlanDocument,
    revision: u32,
    by_id: HashMap<String, NodeIx>,
    nodes: Vec<IndexedNode>,
    lanes: Vec<IndexedLane>,
    bound: HashMap<ResourceUid, (usize, usize)>,
}

/// The document is no plan that could be carried out.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("two nodes are called {0:?}")]
    DuplicateNode(String),
    #[error("node {node:?} needs {need:?}, which does not come before it")]
    NeedNotBefore { node: String, need: String },
    #[error("lane {lane:?} names {node:?}, which is not a node of it")]
    LaneNode { lane: String, node: String },
    #[error("node {node:?} is in lane {lane:?}, which does not list it once")]
    NotInLane { node: String, lane: String },
    #[error("lane {0:?} lets nothing run")]
    EmptyLane(String),
    #[error("lane {0:?} cannot be walked to its end: an item needs what only opens after it")]
    LaneDeadlock(String),
    #[error("the digest of a gate cannot be computed")]
    Digest(#[from] CanonicalError),
}

impl PlanIndex {
    /// Indexes `document` as revision `revision` of its operation's plan.
    ///
    /// # Errors
    /// When the plan could not be carried out to an end.
    pub fn new(document: PlanDocument, revision: u32) -> Result<Self, IndexError> {
        let plan = document.plan();
        let by_id = ids(plan)?;
        let mut nodes = edges(plan, &by_id)?;
        let lanes = lanes(plan, &by_id, &mut nodes)?;
        for (ix, node) in plan.nodes.iter().enumerate() {
            if matches!(node.action, NodeKind::Gate(_)) {
                nodes[ix].digest = gate_digest(plan, &node.id)?;
            }
            if matches!(node.action, NodeKind::Join) {
                nodes[ix].items = items_of(plan, node, &nodes[ix]);
            }
        }
        crate::lane_order::check(plan, &nodes, &lanes)?;
        let mut bound = HashMap::new();
        for (slot_ix, slot) in plan.slots.iter().enumerate() {
            for (ix, resource) in slot.resources.iter().enumerate() {
                bound.entry(resource.uid).or_insert((slot_ix, ix));
            }
        }
        Ok(Self {
            document,
            revision,
            by_id,
            nodes,
            lanes,
            bound,
        })
    }

    /// The plan with its bytes and digest.
    #[must_use]
    pub const fn document(&self) -> &PlanDocument {
        &self.document
    }

    /// The plan.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        self.document.plan()
    }

    /// Which revision of its operation's plan this is, from 1.
    #[must_use]
    pub const fn revision(&self) -> u32 {
        self.revision
    }

    /// The digest that a decision on the gate `node` binds to.
    #[must_use]
    pub fn gate_digest(&self, node: &str) -> Option<Sha256Digest> {
        self.position(node).and_then(|ix| self.nodes[ix].digest)
    }

    /// The bound resource of this incarnation.
    #[must_use]
    pub fn resource(&self, uid: ResourceUid) -> Option<&BoundResource> {
        let (slot, ix) = self.bound.get(&uid)?;
        self.plan().slots.get(*slot)?.resources.get(*ix)
    }

    /// Every binding with the slot that it fills, in plan order.
    pub fn bindings(&self) -> impl Iterator<Item = (&str, &BoundResource)> {
        let slots = self.plan().slots.iter();
        slots.flat_map(|slot| slot.resources.iter().map(|resource| (slot.slot.as_str(), resource)))
    }

    pub(crate) fn position(&self, id: &str) -> Option<NodeIx> {
        self.by_id.get(id).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn node(&self, ix: NodeIx) -> &PlanNode {
        &self.plan().nodes[ix]
    }

    pub(crate) fn edges(&self, ix: NodeIx) -> &IndexedNode {
        &self.nodes[ix]
    }

    pub(crate) fn lanes(&self) -> &[IndexedLane] {
        &self.lanes
    }
}

fn ids(plan: &Plan) -> Result<HashMap<String, NodeIx>, IndexError> {
    let mut by_id = HashMap::with_capacity(plan.nodes.len());
    for (ix, node) in plan.nodes.iter().enumerate() {
        if by_id.insert(node.id.clone(), ix).is_some() {
            return Err(IndexError::DuplicateNode(node.id.clone()));
        }
    }
    Ok(by_id)
}

fn edges(plan: &Plan, by_id: &HashMap<String, NodeIx>) -> Result<Vec<IndexedNode>, IndexError> {
    let mut nodes = vec![IndexedNode::default(); plan.nodes.len()];
    for (ix, node) in plan.nodes.iter().enumerate() {
        for (position, need) in node.needs.iter().enumerate() {
            let needed = by_id.get(&need.node).copied().filter(|needed| *needed < ix);
            let Some(needed) = needed else {
                return Err(IndexError::NeedNotBefore {
                    node: node.id.clone(),
                    need: need.node.clone(),
                });
            };
            nodes[ix].needs.push(IndexedNeed {
                node: needed,
                accept: AcceptSet::of(&need.accept),
            });
            nodes[needed].dependents.push((ix, position));
        }
    }
    Ok(nodes)
}

fn lanes(
    plan: &Plan,
    by_id: &HashMap<String, NodeIx>,
    nodes: &mut [IndexedNode],
) -> Result<Vec<IndexedLane>, IndexError> {
    let mut lanes = Vec::with_capacity(plan.lanes.len());
    for (lane_ix, lane) in plan.lanes.iter().enumerate() {
        if lane.max_parallel == 0 {
            return Err(IndexError::EmptyLane(lane.id.clone()));
        }
        let mut items = Vec::with_capacity(lane.items.len());
        for (item_ix, item) in lane.items.iter().enumerate() {
            let mut members = Vec::with_capacity(item.nodes.len());
            for id in &item.nodes {
                members.push(member(plan, lane, id, by_id, nodes, (lane_ix, item_ix))?);
            }
            items.push(members);
        }
        lanes.push(IndexedLane {
            max_parallel: lane.max_parallel as usize,
            max_failures: lane.max_failures as usize,
            items,
        });
    }
    for (ix, node) in plan.nodes.iter().enumerate() {
        if let (Some(lane), None) = (&node.lane, nodes[ix].lane) {
            return Err(IndexError::NotInLane {
                node: node.id.clone(),
                lane: lane.clone(),
            });
        }
    }
    Ok(lanes)
}

fn member(
    plan: &Plan,
    lane: &Lane,
    id: &str,
    by_id: &HashMap<String, NodeIx>,
    nodes: &mut [IndexedNode],
    place: (usize, usize),
) -> Result<NodeIx, IndexError> {
    let found = by_id
        .get(id)
        .copied()
        .filter(|ix| plan.nodes[*ix].lane.as_deref() == Some(&lane.id));
    let Some(ix) = found else {
        return Err(IndexError::LaneNode {
            lane: lane.id.clone(),
            node: id.to_owned(),
        });
    };
    if nodes[ix].lane.replace(place).is_some() {
        return Err(IndexError::NotInLane {
            node: id.to_owned(),
            lane: lane.id.clone(),
        });
    }
    Ok(ix)
}

/// The items of a join: those of its needs that are item nodes of the same template node.
fn items_of(plan: &Plan, join: &PlanNode, edges: &IndexedNode) -> Vec<NodeIx> {
    let is_item = |ix: &NodeIx| {
        let node = &plan.nodes[*ix];
        node.item.is_some() && node.template_node == join.template_node
    };
    edges.needs.iter().map(|need| need.node).filter(is_item).collect()
}
