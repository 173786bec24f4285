//! Where the lanes of a run stand: which item is open, which opens next, how many failed.
//!
//! An item is open from the start of its first node in this run until its last node has ended. What was
//! carried over from an earlier run neither opens an item nor counts as its failure.

use std::collections::BTreeSet;

use crate::PlanIndex;
use crate::index::NodeIx;
use crate::state::{Cell, is_bad};

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct LaneState {
    pub(crate) items: Vec<LaneItemState>,
    /// Items that are open.
    pub(crate) open: usize,
    pub(crate) failed: usize,
    /// The first item that has neither opened nor closed.
    pub(crate) next: usize,
    /// Nodes of open items that may start.
    pub(crate) startable: BTreeSet<NodeIx>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct LaneItemState {
    pub(crate) opened: bool,
    /// Nodes that have not ended.
    pub(crate) open_nodes: usize,
    pub(crate) failed: bool,
    /// Nodes that may start once the item opens.
    pub(crate) waiting: BTreeSet<NodeIx>,
}

/// Whether a node was started in `run`.
fn started(cell: &Cell, run: u32) -> bool {
    cell.row.run == run && cell.row.started_at.is_some()
}

impl LaneState {
    pub(crate) fn derive(plan: &PlanIndex, cells: &[Cell], run: u32) -> Vec<Self> {
        let lanes = plan.lanes().iter();
        lanes.map(|lane| Self::of(&lane.items, cells, run)).collect()
    }

    fn of(items: &[Vec<NodeIx>], cells: &[Cell], run: u32) -> Self {
        let mut lane = Self::default();
        for members in items {
            let members = || members.iter().map(|ix| &cells[*ix]);
            let item = LaneItemState {
                opened: members().any(|cell| started(cell, run)),
                open_nodes: members().filter(|cell| !cell.row.state.is_end()).count(),
                failed: members().any(|cell| cell.row.run == run && is_bad(cell.row.state)),
                waiting: BTreeSet::new(),
            };
            lane.open += usize::from(item.opened && item.open_nodes > 0);
            lane.failed += usize::from(item.failed);
            lane.items.push(item);
        }
        lane.advance();
        lane
    }

    /// Moves past items that have opened or closed.
    pub(crate) fn advance(&mut self) {
        let passed = |item: &LaneItemState| item.opened || item.open_nodes == 0;
        while self.items.get(self.next).is_some_and(passed) {
            self.next += 1;
        }
    }

    /// A node of `item` may start as soon as the item is open.
    pub(crate) fn arrive(&mut self, item: usize, ix: NodeIx) {
        if self.items[item].opened {
            self.startable.insert(ix);
        } else {
            self.items[item].waiting.insert(ix);
        }
    }

    /// Whether anything of the lane could start at once.
    pub(crate) fn may_go_on(&self, max_parallel: usize) -> bool {
        !self.startable.is_empty() || self.may_open(max_parallel)
    }

    fn may_open(&self, max_parallel: usize) -> bool {
        let ready = self.items.get(self.next).is_some_and(|item| !item.waiting.is_empty());
        ready && self.open < max_parallel
    }

    /// Opens the next item if there is room and a node of it may start.
    pub(crate) fn open_next(&mut self, max_parallel: usize) -> bool {
        if !self.may_open(max_parallel) {
            return false;
        }
        let item = &mut self.items[self.next];
        item.opened = true;
        self.open += 1;
        let waiting = core::mem::take(&mut item.waiting);
        self.startable.extend(waiting);
        self.advance();
        true
    }

    /// A node of `item` has ended.
    pub(crate) fn end(&mut self, item: usize, ix: NodeIx, bad: bool) {
        self.startable.remove(&ix);
        let state = &mut self.items[item];
        state.waiting.remove(&ix);
        state.open_nodes -= 1;
        if bad && !core::mem::replace(&mut state.failed, true) {
            self.failed += 1;
        }
        if state.opened && state.open_nodes == 0 {
            self.open -= 1;
        }
        self.advance();
    }

    /// Items that have not opened.
    pub(crate) fn unopened(&self) -> impl Iterator<Item = usize> {
        let open = |(_, item): &(usize, &LaneItemState)| !item.opened && item.open_nodes > 0;
        self.items.iter().enumerate().filter(open).map(|(ix, _)| ix)
    }
}
