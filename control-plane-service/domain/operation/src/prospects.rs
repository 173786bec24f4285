//! Whether anything can still start behind a gate: a decision that would change nothing is not asked for.
//!
//! Invariants: what is given up here does not start in this run, whatever is decided; a gate is out of
//! prospects only when everything that it would let through is given up or has ended. Both only ever become
//! true, so they are kept step by step, at a cost of each edge once a run. A gate behind which the plan puts
//! nothing is asked for its own sake.

use std::collections::BTreeSet;

use control_plane_plan::{Accept, NodeKind};

use crate::NodeState;
use crate::PlanIndex;
use crate::index::{IndexedNeed, NodeIx};
use crate::state::Cell;

/// What may still come of the nodes of a run. Empty for a plan without gates.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Prospects {
    nodes: Vec<Prospect>,
    /// Gates that have run out of prospects and were not looked at.
    pub(crate) idle: BTreeSet<NodeIx>,
}

#[derive(Debug, Clone, PartialEq, Default)]
struct Prospect {
    /// Its start is what a gate is asked for.
    acts: bool,
    /// It has ended or is given up.
    spent: bool,
    /// It has been skipped or will be.
    given_up: bool,
    /// Whatever needs it stays behind a gate that did not pass.
    shut: bool,
    /// Neither it nor anything behind it can start.
    hopeless: bool,
    /// Dependents of which this is not so.
    hopeful_dependents: usize,
    /// Of a fan-out: items that are not given up.
    possible_items: usize,
}

enum Fact {
    Spent(NodeIx),
    GivenUp(NodeIx),
    Shut(NodeIx),
    /// A dependent less has prospects.
    Fewer(NodeIx),
}

impl Prospects {
    pub(crate) fn derive(plan: &PlanIndex, cells: &[Cell]) -> Self {
        if !(0..plan.len()).any(|ix| is_gate(plan, ix)) {
            return Self::default();
        }
        let mut prospects = Self::planned(plan);
        for (ix, cell) in cells.iter().enumerate() {
            let ended = cell.row.state.is_end();
            let empty_fan_out = is_join(plan, ix) && plan.edges(ix).items.is_empty();
            if ended {
                prospects.ended(plan, ix, cell.row.state);
            } else if plan.node(ix).skipped || empty_fan_out {
                prospects.settle(plan, Fact::GivenUp(ix));
            }
            prospects.needs_met(plan, ix, cell);
        }
        prospects
    }

    /// As the plan has it, before anything happened.
    fn planned(plan: &PlanIndex) -> Self {
        let mut nodes = vec![Prospect::default(); plan.len()];
        for ix in (0..plan.len()).rev() {
            let node = &mut nodes[ix];
            let leads_on = node.hopeful_dependents > 0;
            node.acts = match plan.node(ix).action {
                NodeKind::Join => false,
                NodeKind::Gate(_) => !leads_on,
                NodeKind::Job(_) | NodeKind::ResourceUpdate(_) => true,
            };
            node.hopeless = !node.acts && !leads_on;
            node.possible_items = plan.edges(ix).items.len();
            if !node.hopeless {
                for need in plan.edges(ix).needs.iter().filter(|need| lets_through(plan, ix, need)) {
                    nodes[need.node].hopeful_dependents += 1;
                }
            }
        }
        Self {
            nodes,
            idle: BTreeSet::new(),
        }
    }

    /// Whether nothing behind this gate can start.
    pub(crate) fn hopeless(&self, ix: NodeIx) -> bool {
        self.nodes.get(ix).is_some_and(|node| node.hopeless)
    }

    pub(crate) fn ended(&mut self, plan: &PlanIndex, ix: NodeIx, state: NodeState) {
        self.settle(
            plan,
            match state {
                NodeState::Skipped => Fact::GivenUp(ix),
                _ => Fact::Spent(ix),
            },
        );
    }

    /// Takes in what the ends of its needs mean for a node.
    pub(crate) fn needs_met(&mut self, plan: &PlanIndex, ix: NodeIx, cell: &Cell) {
        if cell.closed {
            self.settle(plan, Fact::Shut(ix));
        } else if cell.blocked && !is_join(plan, ix) && !cell.row.state.is_end() {
            self.settle(plan, Fact::GivenUp(ix));
        }
    }

    fn settle(&mut self, plan: &PlanIndex, fact: Fact) {
        if self.nodes.is_empty() {
            return;
        }
        let mut facts = vec![fact];
        while let Some(fact) = facts.pop() {
            match fact {
                Fact::Spent(ix) => self.spent(plan, ix, &mut facts),
                Fact::GivenUp(ix) => self.given_up(plan, ix, &mut facts),
                Fact::Shut(ix) => self.shut(plan, ix, &mut facts),
                Fact::Fewer(ix) => {
                    self.nodes[ix].hopeful_dependents -= 1;
                    self.look(plan, ix, &mut facts);
                }
            }
        }
    }

    fn spent(&mut self, plan: &PlanIndex, ix: NodeIx, facts: &mut Vec<Fact>) {
        self.nodes[ix].spent = true;
        self.look(plan, ix, facts);
    }

    fn given_up(&mut self, plan: &PlanIndex, ix: NodeIx, facts: &mut Vec<Fact>) {
        if core::mem::replace(&mut self.nodes[ix].given_up, true) {
            return;
        }
        self.spent(plan, ix, facts);
        for (dependent, position) in &plan.edges(ix).dependents {
            let need = &plan.edges(*dependent).needs[*position];
            if is_join(plan, *dependent) {
                self.item_given_up(plan, *dependent, ix, facts);
            } else if !need.accept.contains(Accept::Skipped) && !self.nodes[*dependent].spent {
                facts.push(Fact::GivenUp(*dependent));
            }
        }
    }

    /// A fan-out of which every item is skipped is skipped.
    fn item_given_up(&mut self, plan: &PlanIndex, join: NodeIx, item: NodeIx, facts: &mut Vec<Fact>) {
        let item = plan.node(item);
        if item.item.is_none() || item.template_node != plan.node(join).template_node {
            return;
        }
        self.nodes[join].possible_items -= 1;
        if self.nodes[join].possible_items == 0 && !self.nodes[join].spent {
            facts.push(Fact::GivenUp(join));
        }
    }

    fn shut(&mut self, plan: &PlanIndex, ix: NodeIx, facts: &mut Vec<Fact>) {
        if core::mem::replace(&mut self.nodes[ix].shut, true) {
            return;
        }
        if !is_join(plan, ix) && !self.nodes[ix].spent {
            facts.push(Fact::GivenUp(ix));
        }
        let dependents = plan.edges(ix).dependents.iter();
        facts.extend(dependents.map(|(dependent, _)| Fact::Shut(*dependent)));
    }

    /// Looks whether a node has run out of prospects, and tells those that it needs.
    fn look(&mut self, plan: &PlanIndex, ix: NodeIx, facts: &mut Vec<Fact>) {
        let node = &mut self.nodes[ix];
        let hopeful = (node.acts && !node.spent) || node.hopeful_dependents > 0;
        if hopeful || core::mem::replace(&mut node.hopeless, true) {
            return;
        }
        if is_gate(plan, ix) && !node.spent {
            self.idle.insert(ix);
        }
        let needs = plan.edges(ix).needs.iter();
        let needs = needs.filter(|need| lets_through(plan, ix, need));
        facts.extend(needs.map(|need| Fact::Fewer(need.node)));
    }
}

fn is_gate(plan: &PlanIndex, ix: NodeIx) -> bool {
    matches!(plan.node(ix).action, NodeKind::Gate(_))
}

fn is_join(plan: &PlanIndex, ix: NodeIx) -> bool {
    matches!(plan.node(ix).action, NodeKind::Join)
}

/// Whether the start of `ix`, or of something behind it, may hang on how the needed node ends. What only
/// handles a gate's rejection is not what the gate is asked for, nor is what runs however it ends.
fn lets_through(plan: &PlanIndex, ix: NodeIx, need: &IndexedNeed) -> bool {
    let indifferent = need.accept.contains(Accept::Failed) && need.accept.contains(Accept::Skipped);
    !is_gate(plan, need.node) || is_join(plan, ix) || (need.accept.contains(Accept::Succeeded) && !indifferent)
}
