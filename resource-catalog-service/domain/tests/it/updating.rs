use contracts::{
    Changes, EvidenceRef, EvidenceResult, HealthStatus, LifecycleStatus, ProjectionEventType, ProvidedCapabilities,
    ResourceUpdateCommand,
};
use kernel::id::ResourceUid;
use proptest::prelude::*;
use resource_catalog_domain::update::{apply, touched};
use resource_catalog_domain::{Change, Refusal, Resource};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::fixtures::{assert_faults, at, capabilities, evidence, id, map, name, node, types, uid};

fn command(changes: Changes, evidence: Vec<EvidenceRef>) -> ResourceUpdateCommand {
    ResourceUpdateCommand {
        command_id: Uuid::from_u128(20).into(),
        operation_id: Uuid::from_u128(21).into(),
        resource_id: id("node/web-1"),
        expected_version: 1,
        changes,
        evidence,
        uid: Some(uid()),
        traceparent: None,
    }
}

fn adding(capability: &str) -> ProvidedCapabilities {
    ProvidedCapabilities {
        add: vec![name(capability)],
        ..ProvidedCapabilities::default()
    }
}

fn run(command: &ResourceUpdateCommand) -> Result<Change, Refusal> {
    apply(&node(), &types(), &capabilities(), command, at(60))
}

fn rejected(command: &ResourceUpdateCommand, expected: &[(&str, &'static str)]) {
    match run(command) {
        Err(Refusal::Rejected(faults)) => assert_faults(&faults, expected),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_an_operation_made_true_becomes_the_next_version() {
    let changes = Changes {
        lifecycle_status: Some(LifecycleStatus::Running),
        health_status: Some(HealthStatus::Healthy),
        observed_state_patch: Some(json!({"web": {"version": "2"}})),
        provided_capabilities: Some(adding("plain")),
    };
    let change = run(&command(changes, vec![evidence("plain", EvidenceResult::Passed)])).unwrap();
    assert_eq!(change.next.version, 2);
    assert_eq!(change.next.lifecycle, LifecycleStatus::Running);
    assert_eq!(Value::Object(change.next.observed), json!({"web": {"version": "2"}}));
    assert_eq!(
        change.events,
        [
            ProjectionEventType::ResourceUpdated,
            ProjectionEventType::CapabilityProvided,
            ProjectionEventType::ResourceHealthChanged
        ]
    );
    assert_eq!(
        change.changed,
        [
            "/health",
            "/lifecycle_status",
            "/observed_state/web",
            "/provided_capabilities/plain"
        ]
    );
}

#[test]
fn a_capability_is_added_only_with_evidence_that_passed_for_it() {
    let changes = || Changes {
        provided_capabilities: Some(adding("plain")),
        ..Changes::default()
    };
    let place = "/changes/provided_capabilities/add/0";
    for useless in [
        vec![],
        vec![evidence("plain", EvidenceResult::Failed)],
        vec![evidence("plain", EvidenceResult::Inconclusive)],
        vec![evidence("web.http", EvidenceResult::Passed)],
    ] {
        rejected(&command(changes(), useless), &[(place, "evidence_missing")]);
    }
    let mut elsewhere = evidence("plain", EvidenceResult::Passed);
    elsewhere.resource_id = Some(id("node/web-2"));
    rejected(
        &command(changes(), vec![elsewhere]),
        &[("/evidence/0/resource_id", "contradiction")],
    );
}

#[test]
fn a_stale_version_or_another_incarnation_is_a_conflict() {
    let mut stale = command(Changes::default(), vec![]);
    stale.expected_version = 7;
    let mut other = command(Changes::default(), vec![]);
    other.uid = Some(ResourceUid(Uuid::from_u128(99)));
    for (refused, other_incarnation) in [(stale, false), (other, true)] {
        match run(&refused) {
            Err(Refusal::Conflict(conflict)) => {
                assert_eq!(conflict.current_version, 1);
                assert_eq!(conflict.other_incarnation, other_incarnation);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_rejected_command_names_every_field() {
    let mut provided = adding("no.such");
    provided.add.push(name("web.http"));
    provided.remove.push(name("web.http"));
    provided.attributes = map(json!({"web.http": {"port": "x"}, "other": {}}));
    let changes = Changes {
        lifecycle_status: Some(LifecycleStatus::Degraded),
        health_status: None,
        observed_state_patch: Some(json!({"load": -1})),
        provided_capabilities: Some(provided),
    };
    rejected(
        &command(changes, vec![evidence("web.http", EvidenceResult::Passed)]),
        &[
            ("/changes/lifecycle_status", "transition_not_allowed"),
            ("/changes/observed_state_patch/load", "schema_violation"),
            ("/changes/provided_capabilities/add/0", "unknown_capability"),
            ("/changes/provided_capabilities/add/1", "contradiction"),
            (
                "/changes/provided_capabilities/attributes/web.http/port",
                "schema_violation",
            ),
            ("/changes/provided_capabilities/attributes/other", "contradiction"),
        ],
    );
    for patch in [json!([1]), json!("x"), Value::Null] {
        let changes = Changes {
            observed_state_patch: Some(patch),
            ..Changes::default()
        };
        rejected(
            &command(changes, vec![]),
            &[("/changes/observed_state_patch", "not_an_object")],
        );
    }
}

#[test]
fn a_version_that_cannot_be_read_is_said_so() {
    let mut provided = adding("os.linux.debian");
    provided.attributes = map(json!({"os.linux.debian": {"version": "bookworm"}}));
    let changes = Changes {
        provided_capabilities: Some(provided),
        ..Changes::default()
    };
    rejected(
        &command(changes, vec![evidence("os.linux.debian", EvidenceResult::Passed)]),
        &[(
            "/changes/provided_capabilities/attributes/os.linux.debian/version",
            "not_a_version",
        )],
    );
}

#[test]
fn a_provider_of_the_child_provides_the_parent() {
    let changes = Changes {
        provided_capabilities: Some(adding("os.linux.debian")),
        ..Changes::default()
    };
    let change = run(&command(
        changes,
        vec![evidence("os.linux.debian", EvidenceResult::Passed)],
    ))
    .unwrap();
    assert!(change.next.effective_capabilities().contains_key(&name("os.linux")));
}

fn commands() -> impl Strategy<Value = ResourceUpdateCommand> {
    let lifecycle = proptest::option::of(proptest::sample::select(LifecycleStatus::ALL.to_vec()));
    let health = proptest::option::of(proptest::sample::select(HealthStatus::ALL.to_vec()));
    let patch = proptest::option::of(prop_oneof![
        Just(json!({"load": 1})),
        Just(json!({"load": -1})),
        Just(json!({"load": null, "a": {"b": 1}})),
        Just(json!({"a": {"b": null}})),
        Just(json!(3)),
    ]);
    let names = || proptest::sample::subsequence(vec!["plain", "web.http", "os.linux", "no.such"], 0..4);
    let results = proptest::sample::select(vec![
        EvidenceResult::Passed,
        EvidenceResult::Failed,
        EvidenceResult::Inconclusive,
    ]);
    let proof = (names(), results);
    (lifecycle, health, patch, names(), names(), proof, 0_i64..4).prop_map(
        |(lifecycle_status, health_status, observed_state_patch, add, remove, (proven, result), expected)| {
            let names = |list: Vec<&str>| list.into_iter().map(name).collect();
            let changes = Changes {
                lifecycle_status,
                health_status,
                observed_state_patch,
                provided_capabilities: Some(ProvidedCapabilities {
                    add: names(add),
                    remove: names(remove),
                    attributes: serde_json::Map::new(),
                }),
            };
            let mut made = command(changes, proven.into_iter().map(|c| evidence(c, result)).collect());
            made.expected_version = expected;
            made
        },
    )
}

fn proven(resource: &Resource) -> bool {
    resource.provided.iter().all(|(name, held)| {
        held.evidence
            .iter()
            .any(|e| e.capability == *name && e.result == EvidenceResult::Passed)
    })
}

proptest! {
    /// Along any sequence of commands: versions are gapless, only the expected version is ever replaced, transitions
    /// are the type's, every capability is proven, and what changed lies within what the command touches.
    #[test]
    fn any_sequence_of_commands_keeps_the_rules(sequence in proptest::collection::vec(commands(), 1..12)) {
        let (types, capabilities) = (types(), capabilities());
        let mut current = node();
        for mut command in sequence {
            command.expected_version += (current.version - 2).max(0);
            match apply(&current, &types, &capabilities, &command, at(current.version)) {
                Ok(change) => {
                    prop_assert_eq!(command.expected_version, current.version);
                    prop_assert_eq!(change.next.version, current.version + 1);
                    let kind = types.get(&current.resource_type).unwrap();
                    prop_assert!(kind.transitions.allows(current.lifecycle, change.next.lifecycle));
                    prop_assert!(proven(&change.next));
                    let touched = touched(&command);
                    for place in &change.changed {
                        prop_assert!(touched.iter().any(|t| resource_catalog_domain::change::overlap(t, place)), "{place} {touched:?}");
                    }
                    current = change.next;
                }
                Err(Refusal::Conflict(conflict)) => prop_assert_ne!(conflict.expected_version, current.version),
                Err(Refusal::Rejected(faults)) => prop_assert!(!faults.is_empty()),
            }
        }
    }
}
