//! What an ended run hands to the next one: which nodes keep their end and which begin anew.
//!
//! Invariant: what succeeded never runs again. A gate that passed keeps its pass as long as what it covers
//! is the same; otherwise it is asked again.

use std::sync::Arc;

use control_plane_plan::NodeKind;

use super::command::{Refused, refuse};
use crate::index::NodeIx;
use crate::row::NodeRunRow;
use crate::state::{OperationState, is_bad};
use crate::{NodeReason, NodeState, PlanIndex, RefusalCode, RetrySelection, accept_of};

/// What an ended run hands to the next one, seen through the plan of the next one.
pub(super) struct Carry<'a> {
    state: &'a OperationState,
    plan: &'a Arc<PlanIndex>,
    revised: bool,
    /// The last row of each node, if it had one.
    pub(super) rows: Vec<Option<NodeRunRow>>,
}

impl<'a> Carry<'a> {
    pub(super) fn new(state: &'a OperationState, plan: &'a Arc<PlanIndex>, revised: bool) -> Self {
        let row = |id: &str| match state.plan.position(id) {
            Some(ix) => Some(state.cells[ix].row.clone()),
            None => state.dropped.iter().find(|row| row.node == id).cloned(),
        };
        let rows = (0..plan.len()).map(|ix| row(&plan.node(ix).id)).collect();
        Self {
            state,
            plan,
            revised,
            rows,
        }
    }

    /// The nodes that a selection names; `None` for all that failed.
    pub(super) fn named(&self, selection: &RetrySelection) -> Result<Option<Vec<NodeIx>>, Refused> {
        let RetrySelection::Nodes(names) = selection else {
            return Ok(None);
        };
        let mut named = Vec::new();
        for name in names {
            let Some(ix) = self.plan.position(name) else {
                let detail = format!("the plan has no node {name}");
                return refuse(RefusalCode::UnknownNode, detail, "list the operation's node runs");
            };
            let items = &self.plan.edges(ix).items;
            let wanted: Vec<NodeIx> = if items.is_empty() {
                vec![ix]
            } else {
                items.iter().copied().filter(|item| !self.succeeded(*item)).collect()
            };
            if wanted.is_empty() || wanted.iter().any(|ix| self.succeeded(*ix)) {
                let detail = format!("{name} succeeded and does not run again");
                return refuse(RefusalCode::NodeState, detail, "name nodes that failed or were not run");
            }
            named.extend(wanted);
        }
        Ok(Some(named))
    }

    fn succeeded(&self, ix: NodeIx) -> bool {
        self.rows[ix]
            .as_ref()
            .is_some_and(|row| row.state == NodeState::Succeeded)
    }

    /// Which nodes begin anew. Plan order is topological, so one pass tells what is behind what.
    pub(super) fn reset(&self, named: Option<&[NodeIx]>) -> Vec<bool> {
        let mut reset = vec![false; self.plan.len()];
        for ix in 0..reset.len() {
            let behind = self.plan.edges(ix).needs.iter().any(|need| reset[need.node]);
            reset[ix] = self.begins_anew(ix, behind, named);
        }
        self.ask_again(&mut reset);
        reset
    }

    /// A gate that was withdrawn is asked again when anything behind it begins anew, however far behind.
    fn ask_again(&self, reset: &mut [bool]) {
        let mut leads_to_anew = reset.to_vec();
        for ix in (0..reset.len()).rev() {
            let dependents = self.plan.edges(ix).dependents.iter();
            leads_to_anew[ix] |= dependents.map(|(dependent, _)| *dependent).any(|ix| leads_to_anew[ix]);
            reset[ix] |= leads_to_anew[ix] && self.was_withdrawn(ix);
        }
    }

    fn was_withdrawn(&self, ix: NodeIx) -> bool {
        let row = self.rows[ix].as_ref();
        row.is_some_and(|row| row.reason == Some(NodeReason::NothingBehind))
    }

    fn begins_anew(&self, ix: NodeIx, behind: bool, named: Option<&[NodeIx]>) -> bool {
        let Some(row) = &self.rows[ix] else { return true };
        let node = self.plan.node(ix);
        let is_named = named.is_some_and(|named| named.contains(&ix));
        match (row.state, row.reason) {
            (NodeState::Succeeded, _) => match &node.action {
                NodeKind::Gate(_) => !self.state.passed(&row.node, self.plan.edges(ix).digest),
                // Only a tally of its items: it is made again when one of them is.
                NodeKind::Join => behind,
                NodeKind::Job(_) | NodeKind::ResourceUpdate(_) => false,
            },
            (NodeState::Skipped, Some(NodeReason::Operator)) => is_named,
            (NodeState::Skipped, Some(NodeReason::Condition)) => !node.skipped && (behind || self.revised),
            (NodeState::Skipped, Some(NodeReason::NeedsNotMet | NodeReason::GateClosed)) => behind || is_named,
            (NodeState::Skipped, Some(NodeReason::NothingBehind)) => behind,
            (state, _) if is_bad(state) => match (&node.action, named) {
                (NodeKind::Join, _) => behind,
                (_, None) => true,
                (_, Some(_)) => is_named || behind,
            },
            _ => true,
        }
    }

    /// A named node whose need failed and stays so would only be skipped.
    pub(super) fn needs_hold(&self, named: Option<&[NodeIx]>, reset: &[bool]) -> Result<(), Refused> {
        for ix in named.into_iter().flatten() {
            for need in &self.plan.edges(*ix).needs {
                let end = self.rows[need.node]
                    .as_ref()
                    .and_then(|row| accept_of(row.state, row.reason));
                if !reset[need.node] && !end.is_some_and(|end| need.accept.contains(end)) {
                    let (node, needed) = (&self.plan.node(*ix).id, &self.plan.node(need.node).id);
                    return refuse(
                        RefusalCode::NeedsNotRetried,
                        format!("{node} would not run: it needs {needed}"),
                        format!("retry {needed} as well"),
                    );
                }
            }
        }
        Ok(())
    }
}
