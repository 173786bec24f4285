use std::collections::BTreeSet;

use contracts::{EvidenceResult, LifecycleStatus, ProjectionEventType};
use proptest::prelude::*;
use resource_catalog_domain::apply::set_edges;
use resource_catalog_domain::change::{VersionChanges, differences, overlap};
use resource_catalog_domain::observe::{provide, withdraw};
use resource_catalog_domain::{Change, Desired, Edge, EdgeFacts, EdgeType, Membership};
use serde_json::{Map, Value, json};

use crate::fixtures::{
    apply_to, assert_faults, at, capabilities, create_one, desired, evidence, facts, id, map, name, node, types,
};

#[test]
fn applying_what_is_so_makes_no_version() {
    assert_eq!(apply_to(&node(), desired()), Ok(None));
}

#[test]
fn only_what_is_asked_for_bumps_the_desired_generation() {
    type Asking = fn(&mut Desired);
    let bumps: [(Asking, i64); 6] = [
        (|d| d.desired = map(json!({"port": 1})), 2),
        (|d| d.connection = Map::new(), 2),
        (|d| d.environment = None, 2),
        (|d| d.labels.clear(), 1),
        (|d| drop(d.annotations.insert("note".into(), "x".into())), 1),
        (|d| d.lifecycle = Some(LifecycleStatus::Running), 1),
    ];
    for (change, generation) in bumps {
        let mut asked = desired();
        change(&mut asked);
        let next = apply_to(&node(), asked).unwrap().unwrap();
        assert_eq!((next.version, next.desired_generation), (2, generation));
    }
}

#[test]
fn every_fault_of_a_request_is_named_at_once() {
    let mut asked = desired();
    asked.environment = Some("Not Good".into());
    asked.labels.insert("-bad".into(), "ok".into());
    asked.labels.insert("key".into(), "not good".into());
    asked.annotations.insert("long".into(), "x".repeat(5_000));
    asked.desired = map(json!({"port": "eighty", "big": 9_007_199_254_740_993_u64}));
    asked.connection = map(json!({"a/b": "x\0"}));
    let expected = [
        ("/environment", "invalid_environment"),
        ("/labels/-bad", "invalid_label"),
        ("/labels/key", "invalid_label"),
        ("/annotations/long", "too_large"),
        ("/desired_state/port", "schema_violation"),
        ("/desired_state/big", "no_canonical_form"),
        ("/connection/a~1b", "no_canonical_form"),
    ];
    assert_faults(&create_one(asked.clone()).unwrap_err(), &expected);
    assert_faults(&apply_to(&node(), asked).unwrap_err(), &expected);
}

#[test]
fn type_and_prefix_of_a_resource_are_what_its_type_says() {
    let mut other = desired();
    other.resource_type = name("data.database");
    other.desired = Map::new();
    assert_faults(
        &create_one(other.clone()).unwrap_err(),
        &[("/resource_type", "prefix_mismatch")],
    );
    assert_faults(
        &apply_to(&node(), other).unwrap_err(),
        &[("/resource_type", "type_fixed")],
    );
    let mut unknown = desired();
    unknown.resource_type = name("no.such");
    assert_faults(&create_one(unknown).unwrap_err(), &[("/resource_type", "unknown_type")]);
}

#[test]
fn a_transition_that_the_type_does_not_allow_is_refused() {
    let mut asked = desired();
    asked.lifecycle = Some(LifecycleStatus::Degraded);
    assert_faults(
        &apply_to(&node(), asked).unwrap_err(),
        &[("/lifecycle_status", "transition_not_allowed")],
    );
}

#[test]
fn states_past_the_limits_are_refused() {
    let mut asked = desired();
    asked.desired = map(json!({"text": "x".repeat(256 * 1024)}));
    assert_faults(
        &apply_to(&node(), asked).unwrap_err(),
        &[("/desired_state", "too_large")],
    );
    let mut deep = json!(1);
    for _ in 0..40 {
        deep = json!([deep]);
    }
    let mut asked = desired();
    asked.desired = map(json!({"deep": deep}));
    assert_faults(
        &apply_to(&node(), asked).unwrap_err(),
        &[("/desired_state", "nested_too_deep")],
    );
}

#[test]
fn an_edge_is_refused_for_each_of_its_reasons() {
    let edge = |edge_type, target: &str| Edge {
        edge_type,
        target: id(target),
    };
    let set = |e: &Edge| BTreeSet::from([e.clone()]);
    let rack = edge(EdgeType::PartOf, "rack/a");
    let good = facts(&rack, Some("topology.rack"));
    let next = set_edges(&node(), set(&rack), &good, &types(), at(1)).unwrap().unwrap();
    assert_eq!((next.version, next.desired_generation), (2, 1));
    assert_eq!(set_edges(&next, set(&rack), &good, &types(), at(2)), Ok(None));

    let refused = |known: EdgeFacts| {
        let facts = [(rack.clone(), known)].into();
        set_edges(&node(), set(&rack), &facts, &types(), at(1)).unwrap_err()[0]
            .code
            .as_str()
    };
    let known = |target_type: Option<&str>, reaches_source| EdgeFacts {
        target_type: target_type.map(name),
        sources: 0,
        reaches_source,
    };
    assert_eq!(refused(known(None, false)), "unknown_target");
    assert_eq!(refused(known(Some("data.database"), false)), "target_type_not_allowed");
    assert_eq!(refused(known(Some("topology.rack"), true)), "cycle");

    let own = edge(EdgeType::BacksUp, "node/web-1");
    let faults = set_edges(&node(), set(&own), &facts(&own, Some("compute.node")), &types(), at(1)).unwrap_err();
    assert_eq!(faults[0].code.as_str(), "cycle");

    let second = edge(EdgeType::PartOf, "rack/b");
    let both = BTreeSet::from([rack.clone(), second.clone()]);
    let mut known = facts(&rack, Some("topology.rack"));
    known.extend(facts(&second, Some("topology.rack")));
    let faults = set_edges(&node(), both, &known, &types(), at(1)).unwrap_err();
    assert_eq!(faults[0].code.as_str(), "too_many_targets");
}

#[test]
fn an_observer_needs_evidence_that_passed() {
    let see = |result, attributes: Value| {
        provide(
            &node(),
            &name("web.http"),
            map(attributes),
            vec![evidence("web.http", result)],
            "scanner",
            &capabilities(),
            at(5),
        )
    };
    let next = see(EvidenceResult::Passed, json!({"port": 80})).unwrap().unwrap();
    assert!(next.provided.contains_key(&name("web.http")));
    assert_faults(
        &see(EvidenceResult::Failed, json!({})).unwrap_err(),
        &[("/evidence", "evidence_missing"), ("/attributes", "schema_violation")],
    );
    let gone = withdraw(&next, &name("web.http"), at(6)).unwrap();
    assert_eq!(gone.version, 3);
    assert_eq!(withdraw(&gone, &name("web.http"), at(7)), None);
}

#[test]
fn a_version_yields_the_events_that_apply() {
    use ProjectionEventType as E;
    let first = node();
    assert_eq!(
        Change::created(first.clone()).events,
        [E::ResourceCreated, E::ResourceUpdated]
    );
    let seen = [evidence("plain", EvidenceResult::Passed)];
    let next = provide(
        &first,
        &name("plain"),
        Map::new(),
        seen.to_vec(),
        "s",
        &capabilities(),
        at(5),
    );
    let next = next.unwrap().unwrap();
    let change = Change::between(&first, next.clone());
    assert_eq!(change.events, [E::ResourceUpdated, E::CapabilityProvided]);
    assert_eq!(change.changed, ["/provided_capabilities/plain"]);
    assert_eq!(change.before, Some(Membership::of(&first)));
    let gone = withdraw(&next, &name("plain"), at(6)).unwrap();
    assert_eq!(
        Change::between(&next, gone).events,
        [E::ResourceUpdated, E::CapabilityWithdrawn]
    );
}

#[test]
fn differences_name_the_last_version_that_touched_a_place() {
    let entry = |version, changed: &[&str]| VersionChanges {
        version,
        changed: changed.iter().map(|c| (*c).to_owned()).collect(),
    };
    let history = [
        entry(3, &["/labels/a", "/observed_state/web/port"]),
        entry(4, &["/labels/a"]),
    ];
    let found = differences(2, 4, &history, &["/observed_state/web".to_owned()]);
    let told: Vec<(&str, i64, bool)> = found
        .iter()
        .map(|d| (d.pointer.as_str(), d.version, d.overlaps))
        .collect();
    assert_eq!(told, [("/labels/a", 4, false), ("/observed_state/web/port", 3, true)]);
    let unknown = differences(1, 4, &history, &[]);
    assert_eq!((unknown[0].pointer.as_str(), unknown[0].overlaps), ("", true));
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![any::<bool>().prop_map(Value::from), (0_i64..9).prop_map(Value::from)];
    leaf.prop_recursive(3, 16, 3, |inner| {
        proptest::collection::btree_map("[a-c]", inner, 0..3).prop_map(|m| Value::Object(m.into_iter().collect()))
    })
}

fn json_map() -> impl Strategy<Value = Map<String, Value>> {
    proptest::collection::btree_map("[a-c]", json_value(), 0..4).prop_map(|m| m.into_iter().collect())
}

proptest! {
    /// The places that a version changed are exactly those where the states differ.
    #[test]
    fn changed_places_are_where_states_differ(old in json_map(), new in json_map()) {
        let before = resource_catalog_domain::Resource { observed: old.clone(), ..node() };
        let mut next = before.successor(at(1));
        next.observed = new.clone();
        let change = Change::between(&before, next);
        prop_assert_eq!(change.changed.is_empty(), old == new);
        let (old, new) = (json!({"observed_state": old}), json!({"observed_state": new}));
        for place in &change.changed {
            prop_assert_ne!(old.pointer(place), new.pointer(place));
        }
        let mut patched = old.clone();
        for place in &change.changed {
            let patch = place.rsplit('/').filter(|t| !t.is_empty()).fold(
                new.pointer(place).cloned().unwrap_or(Value::Null),
                |inner, token| json!({ token: inner }),
            );
            if let Some(existing) = old.pointer(place) && existing.is_object() && new.pointer(place).is_some_and(Value::is_object) {
                prop_assert!(false, "{place} could have been told apart further");
            }
            json_patch_like(&mut patched, &patch);
        }
        prop_assert_eq!(patched, new);
    }

    #[test]
    fn pointers_overlap_only_by_whole_steps(a in "(/[ab]{1,2}){0,3}", b in "(/[ab]{1,2}){0,3}") {
        let steps = |p: &str| p.split('/').map(str::to_owned).collect::<Vec<_>>();
        let (x, y) = (steps(&a), steps(&b));
        prop_assert_eq!(overlap(&a, &b), x.starts_with(&y) || y.starts_with(&x));
    }
}

/// Sets leaves, replacing whole values: what the test above needs of a patch.
fn json_patch_like(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else { return };
    let Value::Object(into) = target else { return };
    for (key, value) in fields {
        match (into.get_mut(key), value) {
            (_, Value::Null) => drop(into.remove(key)),
            (Some(inner @ Value::Object(_)), Value::Object(more)) if more.len() == 1 && inner != value => {
                json_patch_like(inner, value);
            }
            _ => drop(into.insert(key.clone(), value.clone())),
        }
    }
}
