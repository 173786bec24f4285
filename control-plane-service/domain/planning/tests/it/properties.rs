//! Random worlds against random requirements. What a slot is bound to is judged here again, by a plain
//! reading of the constraints, and every remedy is carried out.

use std::collections::{BTreeMap, BTreeSet};

use contracts::LifecycleStatus;
use control_plane_planning::{Candidate, Change, Matched, Remedy, Snapshot, match_slots};
use control_plane_scenario::expression::Scope;
use kernel::{SoftwareVersion, VersionRequirement};
use proptest::prelude::*;
use serde_json::json;

use crate::world::{Words, capability, edge, host, pack, with_slot, world};

#[derive(Debug, Clone)]
struct Asked {
    min: u32,
    max: Option<u32>,
    version: Option<&'static str>,
    label: bool,
    must_not_label: bool,
    distinct: bool,
    same: bool,
}

impl Asked {
    fn requirement(&self) -> String {
        let mut lines = vec![match self.max {
            Some(max) => format!("count: {{min: {}, max: {max}}}", self.min),
            None => "count: all".to_owned(),
        }];
        lines.extend(
            self.version
                .map(|v| format!("capabilities: [{{name: os.linux, version: '{v}'}}]")),
        );
        lines.extend(self.label.then(|| "selector: tier in (web,app)".to_owned()));
        lines.extend(self.must_not_label.then(|| "must_not: {selector: legacy}".to_owned()));
        let topology = "{edge: [part_of, hosted_on], type: topology.rack}";
        if self.distinct {
            lines.push(format!("distinct: {topology}"));
        } else if self.same {
            lines.push(format!("same: {topology}"));
        }
        lines.join("\n")
    }

    fn least(&self) -> usize {
        if self.max.is_none() { 1 } else { self.min as usize }
    }

    /// The constraints about one resource, read plainly.
    fn fits(&self, candidate: &Candidate) -> bool {
        let range = self.version.map(|v| v.parse::<VersionRequirement>().unwrap());
        let linux = candidate
            .capabilities
            .iter()
            .find(|c| c.capability.as_str() == "os.linux");
        let version = |c: &control_plane_planning::Capability| {
            c.attributes["version"]
                .as_str()
                .unwrap()
                .parse::<SoftwareVersion>()
                .unwrap()
        };
        candidate.environment.as_deref() == Some("demo")
            && candidate.lifecycle == LifecycleStatus::Running
            && range.is_none_or(|range| linux.is_some_and(|c| range.accepts(&version(c))))
            && (!self.label || matches!(candidate.labels.get("tier").map(String::as_str), Some("web" | "app")))
            && !(self.must_not_label && candidate.labels.contains_key("legacy"))
            && !((self.distinct || self.same) && racks(candidate).is_empty())
    }
}

fn racks(candidate: &Candidate) -> BTreeSet<String> {
    candidate
        .edges
        .iter()
        .map(|edge| edge.target.to_string())
        .filter(|t| t.starts_with("rack/"))
        .collect()
}

fn asked() -> impl Strategy<Value = Asked> {
    let count = prop_oneof![
        Just((1_u32, None)),
        (0..4_u32, 1..4_u32).prop_map(|(min, more)| (min, Some(min + more))),
    ];
    let version = prop_oneof![Just(None), Just(Some(">=6")), Just(Some(">=5, <6"))];
    let flags = (any::<bool>(), any::<bool>(), 0..3_u8);
    (count, version, flags).prop_map(|((min, max), version, (label, must_not_label, topology))| Asked {
        min,
        max,
        version,
        label,
        must_not_label,
        distinct: topology == 1,
        same: topology == 2,
    })
}

fn candidates() -> impl Strategy<Value = Vec<Candidate>> {
    let one = (
        prop_oneof![4 => Just(Some("demo")), 1 => Just(Some("prod")), 1 => Just(None)],
        prop_oneof![4 => Just(LifecycleStatus::Running), 1 => Just(LifecycleStatus::Maintenance)],
        prop_oneof![Just(None), Just(Some("5.10")), Just(Some("6.1"))],
        prop_oneof![Just(None), Just(Some("web")), Just(Some("db"))],
        prop::bool::weighted(0.2),
        proptest::collection::btree_set(0..4_u8, 0..3),
    );
    proptest::collection::vec(one, 0..7).prop_map(|all| {
        let build = |(n, (environment, lifecycle, version, tier, legacy, racks)): (usize, _)| {
            let mut candidate: Candidate = host(&format!("h{n}"));
            let environment: Option<&str> = environment;
            candidate.environment = environment.map(str::to_owned);
            candidate.lifecycle = lifecycle;
            let version: Option<&str> = version;
            candidate.capabilities = version.map(|v| capability("os.linux", v)).into_iter().collect();
            let tier: Option<&str> = tier;
            if let Some(tier) = tier {
                candidate = candidate.label("tier", tier);
            }
            if legacy {
                candidate = candidate.label("legacy", "");
            }
            let racks: BTreeSet<u8> = racks;
            racks.iter().fold(candidate, |c, rack| c.rack(&format!("r{rack}")))
        };
        all.into_iter().enumerate().map(build).collect()
    })
}

fn matched<'c>(asked: &Asked, snapshot: &'c Snapshot) -> Matched<'c> {
    let pack = pack(&with_slot(&asked.requirement()));
    let parameters = json!({});
    match_slots(
        &pack.templates["t"],
        "demo",
        snapshot,
        &Scope::new([("parameters", &parameters)]),
    )
    .unwrap()
}

/// Whether all can be in different racks, by trying everything.
fn can_be_apart(chosen: &[&Candidate], taken: &BTreeSet<String>) -> bool {
    let Some((first, rest)) = chosen.split_first() else {
        return true;
    };
    racks(first).difference(taken).any(|rack| {
        let mut taken = taken.clone();
        taken.insert(rack.clone());
        can_be_apart(rest, &taken)
    })
}

/// The most that could be bound, by trying every subset.
fn possible(asked: &Asked, candidates: &[Candidate]) -> bool {
    let fitting: Vec<&Candidate> = candidates.iter().filter(|c| asked.fits(c)).collect();
    (0..1_u32 << fitting.len()).any(|mask| {
        let chosen: Vec<&Candidate> = fitting
            .iter()
            .enumerate()
            .filter(|(n, _)| mask & (1 << n) != 0)
            .map(|(_, c)| *c)
            .collect();
        let complete = asked.max.is_some() || chosen.len() == fitting.len();
        chosen.len() >= asked.least() && complete && topology_holds(asked, &chosen)
    })
}

fn topology_holds(asked: &Asked, chosen: &[&Candidate]) -> bool {
    if asked.distinct {
        return can_be_apart(chosen, &BTreeSet::new());
    }
    let mut shared: Option<BTreeSet<String>> = None;
    for candidate in chosen {
        let here = racks(candidate);
        shared = Some(shared.map_or_else(|| here.clone(), |s| s.intersection(&here).cloned().collect()));
    }
    !asked.same || shared.is_none_or(|s| !s.is_empty())
}

fn apply(changes: &[Change], candidate: &mut Candidate, own: &str) {
    let mut labels: BTreeMap<String, String> = candidate.labels.clone();
    for change in changes {
        match change {
            Change::Environment(environment) => candidate.environment = Some(environment.clone()),
            Change::Lifecycle(status) => candidate.lifecycle = *status,
            Change::SetLabel { key, value } => drop(labels.insert(key.clone(), value.clone())),
            Change::DropLabel(key) => drop(labels.remove(key)),
            Change::Provide { version, .. } => {
                let good = if version.as_deref() == Some(">=6") {
                    "6.5"
                } else {
                    "5.5"
                };
                candidate.capabilities = vec![capability("os.linux", good)];
            }
            Change::OwnPlace { edge: along, .. } => candidate.edges = vec![edge(along, &format!("rack/own-{own}"))],
            Change::Place { place, edge: along } => candidate.edges = vec![edge(along, place.as_str())],
            other => panic!("unexpected {other:?}"),
        }
    }
    candidate.labels = labels;
}

fn carry_out(remedy: &Remedy, asked: &Asked, mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    for (resource, changes) in &remedy.changes {
        let candidate = candidates.iter_mut().find(|c| c.resource_id == *resource).unwrap();
        apply(changes, candidate, resource.name());
    }
    // A new resource meets the requirement; where it is, the remedy says.
    let together = remedy
        .additional_must
        .split(", in rack/")
        .nth(1)
        .map_or("new".to_owned(), str::to_owned);
    for n in 0..remedy.additional {
        let mut new = host(&format!("new{n}")).label("tier", "web");
        let good = if asked.version == Some(">=6") { "6.5" } else { "5.5" };
        new.capabilities = vec![capability("os.linux", good)];
        let rack = if asked.distinct {
            format!("new{n}")
        } else {
            together.clone()
        };
        candidates.push(new.rack(&rack));
    }
    candidates
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn slots_are_bound_exactly_when_they_can_be_and_remedies_help(asked in asked(), candidates in candidates()) {
        let snapshot = world(candidates.clone());
        let outcome = matched(&asked, &snapshot);
        let explanation = &outcome.explanations[0];
        prop_assert_eq!(outcome.is_complete(), possible(&asked, &candidates), "{:?}", explanation);
        prop_assert_eq!(explanation.satisfied, outcome.is_complete());
        prop_assert_eq!(explanation.problem.is_some(), !outcome.is_complete());
        prop_assert_eq!(explanation.remedy.is_some(), !outcome.is_complete());
        if outcome.is_complete() {
            let chosen = &outcome.bound["web"].candidates;
            prop_assert!(chosen.iter().all(|c| asked.fits(c)));
            prop_assert!(topology_holds(&asked, chosen));
            prop_assert!(chosen.len() >= asked.least() && asked.max.is_none_or(|max| chosen.len() <= max as usize));
            return Ok(());
        }
        let remedy = &outcome.remedies["web"];
        prop_assert!(remedy.additional > 0 || !remedy.changes.is_empty());
        let mended = world(carry_out(remedy, &asked, candidates));
        let again = matched(&asked, &mended);
        prop_assert!(again.is_complete(), "{} did not help: {:?}", remedy, again.explanations[0]);
    }

    #[test]
    fn every_refusal_says_how_to_undo_it(asked in asked(), candidates in candidates()) {
        let snapshot = world(candidates.clone());
        for refusal in &matched(&asked, &snapshot).explanations[0].refusals {
            let refused = candidates.iter().find(|c| c.resource_id == refusal.resource_id).unwrap();
            prop_assert!(!asked.fits(refused));
            prop_assert!(refusal.remedy.as_ref().is_some_and(|r| !r.is_empty()));
        }
        let refused = matched(&asked, &snapshot).explanations[0].refusals.len();
        prop_assert_eq!(refused, candidates.iter().filter(|c| !asked.fits(c)).count());
    }
}
