use contracts::LifecycleStatus as L;
use proptest::prelude::*;
use resource_catalog_domain::{EdgeRule, EdgeType, OnDelete, TypeDefinition, Types, builtin};
use serde_json::json;

use crate::fixtures::{assert_faults, name};

fn rule(targets: &[&str], max_targets: Option<u32>, cycles_allowed: bool) -> EdgeRule {
    EdgeRule {
        edge_type: EdgeType::DependsOn,
        targets: targets.iter().map(|t| name(t)).collect(),
        max_targets,
        max_sources: None,
        cycles_allowed,
        on_delete: OnDelete::Restrict,
        carries_health: false,
    }
}

fn child() -> TypeDefinition {
    TypeDefinition::derived(name("compute.node.gpu"), name("compute.node"))
}

#[test]
fn a_derived_type_inherits_everything_it_does_not_say() {
    let gpu = builtin::types().admit(child()).unwrap();
    let node = builtin::types().get(&name("compute.node")).unwrap();
    assert_eq!(gpu.id_prefix, "node");
    assert_eq!(gpu.transitions, node.transitions);
    assert_eq!(gpu.edges, node.edges);
    assert_eq!(gpu.desired.len(), node.desired.len());
    assert!(gpu.is_a(&name("compute.node")));
}

#[test]
fn a_derived_type_may_only_narrow() {
    let mut wide = child();
    wide.transitions = Some(vec![
        (L::Decommissioned, vec![L::Running]),
        (L::Running, vec![L::Failed]),
    ]);
    wide.edges = Some(vec![rule(&["compute.node"], None, true)]);
    let faults = builtin::types().admit(wide).unwrap_err();
    assert_faults(
        &faults,
        &[
            ("/lifecycle_transitions", "widens_parent"),
            ("/edges/0/targets", "widens_parent"),
            ("/edges/0/cycles_allowed", "widens_parent"),
        ],
    );
    let mut narrow = child();
    narrow.transitions = Some(vec![(L::Running, vec![L::Failed])]);
    narrow.edges = Some(vec![rule(&["data.database"], Some(1), false)]);
    assert!(builtin::types().admit(narrow).is_ok());
}

#[test]
fn a_parent_may_not_become_narrower_than_a_child_says() {
    let root = |max| TypeDefinition {
        id_prefix: Some("thing".into()),
        parent: None,
        edges: Some(vec![rule(&["compute.node"], max, false)]),
        ..TypeDefinition::derived(name("thing"), name("thing"))
    };
    let mut derived = TypeDefinition::derived(name("thing.small"), name("thing"));
    derived.edges = Some(vec![rule(&["compute.node"], Some(5), false)]);
    let types = Types::over(builtin::types(), vec![derived, root(None)], false).unwrap();
    assert!(types.admit(root(Some(5))).is_ok());
    assert_faults(&types.admit(root(Some(4))).unwrap_err(), &[("/edges", "widens_parent")]);
}

#[test]
fn the_taxonomy_a_parent_and_a_prefix_are_fixed() {
    let types = Types::over(builtin::types(), vec![child()], false).unwrap();
    let built_in = TypeDefinition::derived(name("compute.node"), name("compute.cluster"));
    assert_faults(&types.admit(built_in).unwrap_err(), &[("", "built_in")]);
    let moved = TypeDefinition {
        parent: Some(name("compute.cluster")),
        ..child()
    };
    assert_faults(&types.admit(moved).unwrap_err(), &[("/parent", "parent_fixed")]);
    let renamed = TypeDefinition {
        id_prefix: Some("gpu".into()),
        ..child()
    };
    assert_faults(&types.admit(renamed).unwrap_err(), &[("/id_prefix", "prefix_fixed")]);
    let thief = TypeDefinition {
        parent: None,
        id_prefix: Some("node".into()),
        ..TypeDefinition::derived(name("thief"), name("thief"))
    };
    assert_faults(&types.admit(thief).unwrap_err(), &[("/id_prefix", "prefix_taken")]);
}

#[test]
fn every_fault_of_a_definition_is_named_at_once() {
    let bad = TypeDefinition {
        id_prefix: Some("Bad Prefix".into()),
        desired_schema: Some(json!({"type": "thing"})),
        edges: Some(vec![
            rule(&["compute.node"], None, false),
            rule(&["compute.node"], None, false),
        ]),
        parent: None,
        ..TypeDefinition::derived(name("bad"), name("bad"))
    };
    assert_faults(
        &builtin::types().admit(bad).unwrap_err(),
        &[
            ("/id_prefix", "invalid_prefix"),
            ("/desired_state_schema/type", "invalid_schema"),
            ("/edges/1", "duplicate"),
        ],
    );
    let orphan = TypeDefinition::derived(name("orphan"), name("nobody"));
    assert_faults(
        &builtin::types().admit(orphan).unwrap_err(),
        &[("/parent", "unknown_parent")],
    );
}

fn statuses() -> impl Strategy<Value = Vec<(L, Vec<L>)>> {
    let one = || proptest::sample::select(L::ALL.to_vec());
    proptest::collection::vec((one(), proptest::collection::vec(one(), 0..4)), 0..5)
}

fn rules() -> impl Strategy<Value = Option<EdgeRule>> {
    let targets = proptest::sample::subsequence(
        vec![
            "compute.node",
            "compute.cluster",
            "kubernetes.cluster",
            "data.database",
            "network.network",
        ],
        1..4,
    );
    proptest::option::of(
        (targets, proptest::option::of(1_u32..5), any::<bool>()).prop_map(|(t, max, cycles)| rule(&t, max, cycles)),
    )
}

proptest! {
    /// Whatever is admitted below a parent allows nothing that the parent does not.
    #[test]
    fn what_is_admitted_is_narrower(
        wide in (statuses(), rules()),
        narrow in (proptest::option::of(statuses()), proptest::option::of(rules())),
        asked in (proptest::sample::select(L::ALL.to_vec()), proptest::sample::select(L::ALL.to_vec())),
    ) {
        let root = TypeDefinition {
            parent: None,
            id_prefix: Some("thing".into()),
            transitions: Some(wide.0),
            edges: Some(wide.1.into_iter().collect()),
            ..TypeDefinition::derived(name("thing"), name("thing"))
        };
        let types = Types::over(builtin::types(), vec![root], false).unwrap();
        let derived = TypeDefinition {
            transitions: narrow.0,
            edges: narrow.1.map(|rule| rule.into_iter().collect()),
            ..TypeDefinition::derived(name("thing.special"), name("thing"))
        };
        let parent = types.get(&name("thing")).unwrap();
        if let Ok(child) = types.admit(derived) {
            prop_assert!(!child.transitions.allows(asked.0, asked.1) || parent.transitions.allows(asked.0, asked.1));
            for rule in &child.edges {
                let wider = parent.edge_rule(rule.edge_type).unwrap();
                for target in types.iter().filter(|t| rule.targets.iter().any(|r| t.is_a(r))) {
                    prop_assert!(wider.targets.iter().any(|w| target.is_a(w)));
                }
                prop_assert!(!rule.cycles_allowed || wider.cycles_allowed);
                prop_assert!(wider.max_targets.is_none_or(|w| rule.max_targets.is_some_and(|m| m <= w)));
            }
        }
    }
}
