//! One slot: which candidates fit, which of them are taken, and what to tell when they do not suffice.

use std::collections::BTreeMap;

use control_plane_plan::{CandidateRefusal, SlotExplanation};
use control_plane_scenario::expression::Scope;
use control_plane_scenario::template::{Relation, Topology};
use kernel::ResourceId;

use crate::assignment::Assignment;
use crate::candidate::{Candidate, Place, Snapshot};
use crate::constraint::{Unmet, Wanted};
use crate::places::places_of;
use crate::remedy::{Change, Remedy, sentence};

/// Most refused candidates that are explained one by one.
pub(crate) const MAX_REFUSALS: usize = 100;

/// A candidate of a slot, judged by everything that is about it alone.
pub(crate) struct Judged<'c> {
    pub(crate) candidate: &'c Candidate,
    pub(crate) unmet: Vec<Unmet>,
    /// Where it is, when the slot has a topology.
    places: Vec<ResourceId>,
    score: u64,
}

/// All candidates of a slot, best first: highest score, then resource id.
pub(crate) struct Pool<'t, 'c> {
    pub(crate) wanted: Wanted<'t>,
    pub(crate) judged: Vec<Judged<'c>>,
    left_out: BTreeMap<String, u64>,
}

/// What one slot comes to.
pub(crate) struct Outcome<'c> {
    pub(crate) bound: Vec<&'c Candidate>,
    pub(crate) problem: Option<(String, Remedy)>,
    pub(crate) explanation: SlotExplanation,
}

fn topology<'t>(wanted: &Wanted<'t>) -> Option<&'t Topology> {
    wanted
        .requirement
        .distinct
        .as_ref()
        .or(wanted.requirement.same.as_ref())
}

/// A place of its own that does not exist yet, for a candidate that would have to move.
fn own_place(topology: &Topology) -> Change {
    Change::OwnPlace {
        place_type: topology.place_type.clone(),
        edge: topology.edges.first().cloned().unwrap_or_default(),
    }
}

impl<'t, 'c> Pool<'t, 'c> {
    pub(crate) fn of(wanted: Wanted<'t>, snapshot: &'c Snapshot, scope: &Scope<'_>) -> Self {
        let slot = &wanted.requirement.slot;
        let mut judged: Vec<Judged<'c>> = snapshot
            .candidates
            .iter()
            .filter(|candidate| candidate.is_a(&wanted.requirement.resource_type))
            .map(|candidate| judge(&wanted, candidate, &snapshot.places, scope))
            .collect();
        judged.sort_by(|a, b| {
            let best_first = b.score.cmp(&a.score);
            best_first.then_with(|| a.candidate.resource_id.cmp(&b.candidate.resource_id))
        });
        judged.dedup_by(|a, b| a.candidate.uid == b.candidate.uid);
        Self {
            left_out: snapshot.left_out.get(slot).cloned().unwrap_or_default(),
            wanted,
            judged,
        }
    }

    /// The candidates that fit, related to `parent` where the slot asks for that.
    pub(crate) fn fitting<'p>(&'p self, parent: Option<&'p Candidate>) -> impl Iterator<Item = &'p Judged<'c>> + 'p {
        self.judged
            .iter()
            .filter(move |judged| judged.unmet.is_empty() && self.unrelated(judged, parent).is_none())
    }

    fn unrelated(&self, judged: &Judged<'_>, parent: Option<&Candidate>) -> Option<Unmet> {
        let relation: &Relation = self.wanted.requirement.relation.as_ref()?;
        let parent = parent?;
        let related = judged
            .candidate
            .edges
            .iter()
            .any(|edge| edge.edge_type == relation.edge && edge.target == parent.resource_id);
        (!related).then(|| Unmet {
            constraint: format!("{} {}", relation.edge, parent.resource_id),
            found: format!("has no edge {} to it", relation.edge),
            change: Change::Edge {
                edge: relation.edge.clone(),
                target: parent.resource_id.clone(),
            },
        })
    }

    fn all_unmet(&self, judged: &Judged<'_>, parent: Option<&Candidate>) -> Vec<Unmet> {
        let mut unmet = judged.unmet.clone();
        unmet.extend(self.unrelated(judged, parent));
        unmet
    }

    /// Binds the slot, or says why not.
    pub(crate) fn bind(&self, parent: Option<&Candidate>) -> Outcome<'c> {
        let fitting: Vec<&Judged<'c>> = self.fitting(parent).collect();
        let chosen = self.choose(&fitting);
        let count = self.wanted.requirement.count;
        let enough = chosen.len() >= count.min as usize;
        let complete = count.max.is_some() || chosen.len() == fitting.len();
        let problem = (!(enough && complete)).then(|| self.problem(&fitting, &chosen, parent));
        let explanation = self.explain(parent, &chosen, problem.as_ref());
        Outcome {
            bound: chosen.iter().map(|judged| judged.candidate).collect(),
            problem,
            explanation,
        }
    }

    fn choose<'p>(&self, fitting: &[&'p Judged<'c>]) -> Vec<&'p Judged<'c>> {
        let requirement = self.wanted.requirement;
        let most = requirement.count.max.map_or(usize::MAX, |max| max as usize);
        if requirement.distinct.is_some() {
            let mut assignment = Assignment::new();
            let mut chosen = Vec::new();
            for judged in fitting {
                if chosen.len() < most && assignment.add(judged.places.clone()) {
                    chosen.push(*judged);
                }
            }
            return chosen;
        }
        if requirement.same.is_some() {
            return best_place(fitting, most);
        }
        fitting.iter().copied().take(most).collect()
    }

    fn problem(&self, fitting: &[&Judged<'c>], chosen: &[&Judged<'c>], parent: Option<&Candidate>) -> (String, Remedy) {
        let requirement = self.wanted.requirement;
        let (has, wants) = (chosen.len(), requirement.count.min as usize);
        let place = topology(&self.wanted)
            .map(|t| t.place_type.to_string())
            .unwrap_or_default();
        let problem = if fitting.len() < wants {
            format!(
                "{wants} needed, {} of {} candidates fit",
                fitting.len(),
                self.considered()
            )
        } else if requirement.distinct.is_some() && has < wants {
            format!(
                "{wants} needed in different {place}, the {} that fit are in {has}",
                fitting.len()
            )
        } else if requirement.distinct.is_some() {
            format!("all {} that fit are needed, they share {place}", fitting.len())
        } else {
            format!("{wants} needed in the same {place}, at most {has} that fit are together")
        };
        let remedy = if requirement.same.is_some() {
            self.gather(fitting, parent)
        } else {
            self.spread(fitting, chosen, parent)
        };
        (problem, remedy)
    }

    fn additional(&self, count: usize, together: &str) -> (u32, String) {
        let told = format!(
            "{} in environment {} that meets the requirement{together}",
            self.wanted.requirement.resource_type, self.wanted.environment
        );
        (u32::try_from(count).unwrap_or(u32::MAX), told)
    }

    /// Cheapest first: candidates with the fewest changes join what is chosen already, a move to a place of
    /// its own counting as one change.
    fn spread(&self, fitting: &[&Judged<'c>], chosen: &[&Judged<'c>], parent: Option<&Candidate>) -> Remedy {
        let requirement = self.wanted.requirement;
        let distinct = requirement.distinct.as_ref();
        let target = match requirement.count.max {
            None => (requirement.count.min as usize).max(fitting.len()),
            Some(_) => requirement.count.min as usize,
        };
        let mut assignment = Assignment::new();
        for judged in chosen {
            assignment.add(as_spots(judged));
        }
        let mut options = Vec::new();
        for (rank, judged) in self.judged.iter().enumerate() {
            if chosen.iter().any(|c| c.candidate.uid == judged.candidate.uid) {
                continue;
            }
            let changes: Vec<Change> = self.all_unmet(judged, parent).into_iter().map(|u| u.change).collect();
            options.push((changes.len(), 0, rank, judged, changes.clone()));
            if let Some(topology) = distinct {
                let moved: Vec<Change> = changes
                    .into_iter()
                    .filter(|change| !matches!(change, Change::OwnPlace { .. }))
                    .chain([own_place(topology)])
                    .collect();
                options.push((moved.len(), 1, rank, judged, moved));
            }
        }
        // Where all that fit are needed, those that fit come first: one that is made to fit adds to them.
        let may_wait = |judged: &Judged<'c>| requirement.count.max.is_none() && !judged.unmet.is_empty();
        options.sort_by_key(|(cost, moved, rank, judged, _)| (may_wait(judged), *cost, *moved, *rank));
        let mut remedy = Remedy::default();
        let mut reached = chosen.len();
        for (_, moved, rank, judged, changes) in options {
            let taken = |(id, _): &(ResourceId, Vec<Change>)| *id == judged.candidate.resource_id;
            if reached >= target || remedy.changes.iter().any(taken) {
                continue;
            }
            let spots = if moved == 1 {
                vec![Spot::Own(rank)]
            } else {
                as_spots(judged)
            };
            if distinct.is_none() || assignment.add(spots) {
                reached += 1;
                if !changes.is_empty() {
                    remedy.changes.push((judged.candidate.resource_id.clone(), changes));
                }
            }
        }
        let apart = distinct.map_or_else(String::new, |t| format!(", in a {} of its own", t.place_type));
        (remedy.additional, remedy.additional_must) = self.additional(target.saturating_sub(reached), &apart);
        remedy.changes.sort();
        remedy
    }

    /// The place where the fewest changes bring enough together.
    fn gather(&self, fitting: &[&Judged<'c>], parent: Option<&Candidate>) -> Remedy {
        let requirement = self.wanted.requirement;
        let Some(topology) = &requirement.same else {
            return Remedy::default();
        };
        let edge = topology.edges.first().cloned().unwrap_or_default();
        let target = match requirement.count.max {
            None => (requirement.count.min as usize).max(fitting.len()),
            Some(_) => requirement.count.min as usize,
        };
        let places: std::collections::BTreeSet<&ResourceId> = self.judged.iter().flat_map(|j| &j.places).collect();
        let mut best: Option<(usize, Remedy)> = None;
        for place in places {
            let mut options: Vec<(usize, usize, &Judged<'c>, Vec<Change>)> = self
                .judged
                .iter()
                .enumerate()
                .map(|(rank, judged)| {
                    let mut changes: Vec<Change> = self
                        .all_unmet(judged, parent)
                        .into_iter()
                        .map(|unmet| unmet.change)
                        .filter(|change| !matches!(change, Change::OwnPlace { .. }))
                        .collect();
                    if !judged.places.contains(place) {
                        changes.push(Change::Place {
                            place: place.clone(),
                            edge: edge.clone(),
                        });
                    }
                    let must_come = requirement.count.max.is_none() && judged.unmet.is_empty();
                    (if must_come { 0 } else { changes.len() }, rank, judged, changes)
                })
                .collect();
            options.sort_by_key(|(cost, rank, _, _)| (*cost, *rank));
            options.truncate(target);
            let mut remedy = Remedy::default();
            (remedy.additional, remedy.additional_must) =
                self.additional(target - options.len(), &format!(", in {place}"));
            for (_, _, judged, changes) in options.into_iter().filter(|(_, _, _, changes)| !changes.is_empty()) {
                remedy.changes.push((judged.candidate.resource_id.clone(), changes));
            }
            remedy.changes.sort();
            let changes: usize = remedy.changes.iter().map(|(_, changes)| changes.len()).sum();
            let cost = changes + remedy.additional as usize * 1_000;
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, remedy));
            }
        }
        best.map(|(_, remedy)| remedy).unwrap_or_else(|| {
            let together = format!(", all in one {}", topology.place_type);
            let (additional, additional_must) = self.additional(target, &together);
            Remedy {
                additional,
                additional_must,
                ..Remedy::default()
            }
        })
    }

    fn considered(&self) -> u64 {
        self.judged.len() as u64 + self.left_out.values().sum::<u64>()
    }

    fn explain(
        &self,
        parent: Option<&Candidate>,
        chosen: &[&Judged<'c>],
        problem: Option<&(String, Remedy)>,
    ) -> SlotExplanation {
        let mut refused_by: BTreeMap<String, u64> = self.left_out.clone();
        let mut refusals = Vec::new();
        for judged in &self.judged {
            let unmet = self.all_unmet(judged, parent);
            let Some(first) = unmet.first() else { continue };
            *refused_by.entry(first.constraint.clone()).or_default() += 1;
            let changes: Vec<Change> = unmet.iter().map(|u| u.change.clone()).collect();
            refusals.push(CandidateRefusal {
                resource_id: judged.candidate.resource_id.clone(),
                constraint: first.constraint.clone(),
                found: first.found.clone(),
                remedy: Some(sentence(&changes)),
            });
        }
        refusals.sort_by(|a, b| a.resource_id.cmp(&b.resource_id));
        refusals.truncate(MAX_REFUSALS);
        let mut refused_by: Vec<(String, u64)> = refused_by.into_iter().collect();
        refused_by.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        SlotExplanation {
            slot: self.wanted.requirement.slot.clone(),
            requirement: self.wanted.told(),
            satisfied: problem.is_none(),
            bound: chosen
                .iter()
                .map(|judged| judged.candidate.resource_id.clone())
                .collect(),
            candidates_considered: self.considered(),
            refused_by,
            refusals,
            problem: problem.map(|(problem, _)| problem.clone()),
            remedy: problem.map(|(_, remedy)| remedy.to_string()),
        }
    }
}

/// A place, or one that a candidate would have for itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Spot {
    There(ResourceId),
    Own(usize),
}

fn as_spots(judged: &Judged<'_>) -> Vec<Spot> {
    judged.places.iter().cloned().map(Spot::There).collect()
}

fn judge<'c>(
    wanted: &Wanted<'_>,
    candidate: &'c Candidate,
    places: &BTreeMap<ResourceId, Place>,
    scope: &Scope<'_>,
) -> Judged<'c> {
    let mut unmet = wanted.unmet(candidate, scope);
    let mut here = Vec::new();
    if let Some(topology) = topology(wanted) {
        here = places_of(candidate, topology, places);
        if here.is_empty() {
            unmet.push(Unmet {
                constraint: format!("in a {}", topology.place_type),
                found: format!("is in none (by {})", topology.edges.join(", ")),
                change: own_place(topology),
            });
        }
    }
    let score = if unmet.is_empty() {
        wanted.score(candidate, scope)
    } else {
        0
    };
    Judged {
        candidate,
        unmet,
        places: here,
        score,
    }
}

/// The place with the most of the fitting candidates, then the best ones, then by name.
fn best_place<'p, 'c>(fitting: &[&'p Judged<'c>], most: usize) -> Vec<&'p Judged<'c>> {
    let mut by_place: BTreeMap<&ResourceId, Vec<&'p Judged<'c>>> = BTreeMap::new();
    for judged in fitting {
        for place in &judged.places {
            by_place.entry(place).or_default().push(judged);
        }
    }
    let mut best: Option<(usize, u64, Vec<&'p Judged<'c>>)> = None;
    for together in by_place.into_values() {
        let taken: Vec<&Judged<'c>> = together.into_iter().take(most).collect();
        let (count, score) = (taken.len(), taken.iter().map(|j| j.score).sum());
        if best.as_ref().is_none_or(|(c, s, _)| (count, score) > (*c, *s)) {
            best = Some((count, score, taken));
        }
    }
    best.map(|(_, _, taken)| taken).unwrap_or_default()
}
