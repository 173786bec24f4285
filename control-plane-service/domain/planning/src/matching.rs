//! All slots together: those that others are joined to first, with every choice of theirs tried before
//! the others are called unbindable.

use std::collections::BTreeMap;

use control_plane_plan::SlotExplanation;
use control_plane_scenario::Template;
use control_plane_scenario::expression::Scope;
use kernel::DottedName;

use crate::PlanningError;
use crate::candidate::{Candidate, Snapshot};
use crate::constraint::Wanted;
use crate::remedy::Remedy;
use crate::slot::{Outcome, Pool};

/// Most combinations of related slots that are tried.
const MAX_TRIES: usize = 1_000;

/// What a slot is bound to.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound<'c> {
    /// The capabilities that its pins cover.
    pub reads: Vec<DottedName>,
    /// In binding order: best first.
    pub candidates: Vec<&'c Candidate>,
}

/// What all slots come to, by slot name.
#[derive(Debug, Clone, PartialEq)]
pub struct Matched<'c> {
    pub bound: BTreeMap<String, Bound<'c>>,
    pub explanations: Vec<SlotExplanation>,
    /// Of the slots that could not be bound.
    pub remedies: BTreeMap<String, Remedy>,
}

impl Matched<'_> {
    /// Whether every slot is bound.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.remedies.is_empty()
    }
}

/// Binds every slot of `template`, or explains.
///
/// # Errors
/// When a slot's own values cannot be filled in from the scope.
pub fn match_slots<'c>(
    template: &Template,
    environment: &str,
    snapshot: &'c Snapshot,
    scope: &Scope<'_>,
) -> Result<Matched<'c>, PlanningError> {
    let mut pools = BTreeMap::new();
    for (slot, requirement) in &template.requirements {
        let wanted = Wanted::of(requirement, environment, scope)?;
        pools.insert(slot.as_str(), Pool::of(wanted, snapshot, scope));
    }
    let order = parents_first(template);
    let mut search = Search {
        template,
        pools: &pools,
        order: &order,
        tries: 0,
    };
    let outcomes = match search.step(0, &BTreeMap::new()) {
        Some(outcomes) => outcomes,
        None => search.first_choice(),
    };
    Ok(collect(&pools, outcomes))
}

fn collect<'c>(pools: &BTreeMap<&str, Pool<'_, 'c>>, outcomes: BTreeMap<&str, Outcome<'c>>) -> Matched<'c> {
    let mut matched = Matched {
        bound: BTreeMap::new(),
        explanations: Vec::new(),
        remedies: BTreeMap::new(),
    };
    for (slot, outcome) in outcomes {
        matched.explanations.push(outcome.explanation);
        if let Some((_, remedy)) = outcome.problem {
            matched.remedies.insert(slot.to_owned(), remedy);
        }
        matched.bound.insert(
            slot.to_owned(),
            Bound {
                reads: pools[slot].wanted.reads.clone(),
                candidates: outcome.bound,
            },
        );
    }
    matched
}

/// Slots in an order in which each comes after the one that it is joined to.
fn parents_first(template: &Template) -> Vec<&str> {
    let parent = |slot: &str| template.requirements.get(slot).and_then(|r| r.relation.as_ref());
    let depth = |slot: &str| {
        let mut depth = 0;
        let mut next = parent(slot);
        while let Some(relation) = next {
            depth += 1;
            next = parent(&relation.slot);
        }
        depth
    };
    let mut order: Vec<&str> = template.requirements.keys().map(String::as_str).collect();
    order.sort_by_key(|slot| (depth(slot), *slot));
    order
}

struct Search<'s, 't, 'c> {
    template: &'t Template,
    pools: &'s BTreeMap<&'t str, Pool<'t, 'c>>,
    order: &'s [&'t str],
    tries: usize,
}

impl<'t, 'c> Search<'_, 't, 'c> {
    fn parent(&self, slot: &str, chosen: &BTreeMap<&str, &'c Candidate>) -> Option<&'c Candidate> {
        let relation = self.template.requirements.get(slot)?.relation.as_ref()?;
        chosen.get(relation.slot.as_str()).copied()
    }

    fn is_parent(&self, slot: &str) -> bool {
        let joined = |relation: &control_plane_scenario::template::Relation| relation.slot == slot;
        self.template
            .requirements
            .values()
            .any(|r| r.relation.as_ref().is_some_and(joined))
    }

    /// Binds the slots from `index` on; `None` when no choice of the slots before it allows that.
    fn step(
        &mut self,
        index: usize,
        chosen: &BTreeMap<&'t str, &'c Candidate>,
    ) -> Option<BTreeMap<&'t str, Outcome<'c>>> {
        let Some(slot) = self.order.get(index).copied() else {
            return Some(BTreeMap::new());
        };
        let pool = &self.pools[slot];
        let parent = self.parent(slot, chosen);
        if !self.is_parent(slot) {
            let outcome = pool.bind(parent);
            if outcome.problem.is_some() {
                return None;
            }
            let mut rest = self.step(index + 1, chosen)?;
            rest.insert(slot, outcome);
            return Some(rest);
        }
        let fitting: Vec<&'c Candidate> = pool.fitting(parent).map(|judged| judged.candidate).collect();
        for candidate in fitting {
            self.tries += 1;
            if self.tries > MAX_TRIES {
                return None;
            }
            let mut chosen = chosen.clone();
            chosen.insert(slot, candidate);
            if let Some(mut rest) = self.step(index + 1, &chosen) {
                let mut outcome = pool.bind(parent);
                outcome.explanation.bound = vec![candidate.resource_id.clone()];
                outcome.bound = vec![candidate];
                rest.insert(slot, outcome);
                return Some(rest);
            }
        }
        None
    }

    /// What there is to tell when nothing works: every slot with the first choice of the ones before it.
    fn first_choice(&self) -> BTreeMap<&'t str, Outcome<'c>> {
        let mut chosen = BTreeMap::new();
        let mut outcomes = BTreeMap::new();
        for slot in self.order {
            let outcome = self.pools[slot].bind(self.parent(slot, &chosen));
            if let Some(first) = outcome.bound.first() {
                chosen.insert(*slot, *first);
            }
            outcomes.insert(*slot, outcome);
        }
        outcomes
    }
}
