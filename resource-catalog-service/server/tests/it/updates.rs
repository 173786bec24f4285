use contracts::{Changes, HealthStatus, LifecycleStatus, ProjectionEventType};
use kernel::id::ResourceUid;
use resource_catalog_api::{ClientError, Outcome};
use serde_json::{Value, json};

use crate::harness::{Catalog, command, dotted, id, node, observing, providing, put};

#[tokio::test]
async fn what_an_operation_made_true_is_applied_with_its_event() {
    let catalog = Catalog::start().await;
    catalog.define().await;
    put(&catalog.operator(), "node/web-1", &node()).await;
    let mut command = providing("node/web-1", 1, "web.http");
    command.changes.health_status = Some(HealthStatus::Healthy);
    command.changes.lifecycle_status = Some(LifecycleStatus::Maintenance);
    command.changes.observed_state_patch = Some(json!({"web": {"release": "2"}}));
    command.traceparent = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into());
    let outcome = catalog.control().update_resource(&command).await.unwrap();
    assert_eq!((outcome.outcome, outcome.version), (Outcome::Applied, Some(2)));
    let now = catalog.operator().resource(&id("node/web-1")).await.unwrap();
    assert_eq!(now.version, 2);
    assert_eq!(now.lifecycle_status, LifecycleStatus::Maintenance);
    assert_eq!(
        Value::Object(now.observed_state.clone()),
        json!({"web": {"release": "2"}})
    );
    let provided = &now.provided_capabilities[0];
    assert_eq!(provided.capability, dotted("web.http"));
    assert_eq!(provided.evidence, command.evidence);

    let events = catalog.events(5).await;
    let of_it: Vec<_> = events.iter().filter(|e| e.version == 2).collect();
    let types: Vec<&ProjectionEventType> = of_it.iter().map(|e| &e.event_type).collect();
    assert_eq!(
        types,
        [
            &ProjectionEventType::ResourceUpdated,
            &ProjectionEventType::CapabilityProvided,
            &ProjectionEventType::ResourceHealthChanged
        ]
    );
    for event in of_it {
        assert_eq!(event.command_id, Some(command.command_id));
        assert_eq!((event.prev_version, event.revision), (Some(1), Some(2)));
        assert_eq!(event.traceparent, command.traceparent);
        assert_eq!(
            Value::Object(event.payload.clone()),
            serde_json::to_value(&now).unwrap()
        );
    }
}

#[tokio::test]
async fn a_command_sent_again_has_its_first_outcome_and_with_another_body_is_an_error() {
    let catalog = Catalog::start().await;
    let control = catalog.control();
    put(&catalog.operator(), "node/web-1", &node()).await;
    let first = command("node/web-1", 1, observing(json!({"a": 1})));
    let applied = control.update_resource(&first).await.unwrap();
    let replayed = control.update_resource(&first).await.unwrap();
    assert_eq!(replayed.outcome, Outcome::Replayed);
    assert_eq!(replayed.first_outcome, Some(Outcome::Applied));
    assert_eq!((replayed.version, replayed.uid), (applied.version, applied.uid));
    let mut other = first.clone();
    other.changes = observing(json!({"a": 2}));
    let error = control.update_resource(&other).await.unwrap_err();
    assert_eq!((error.status(), error.code()), (Some(409), Some("command_id_reused")));

    let stale = command("node/web-1", 1, observing(json!({"a": 3})));
    assert_eq!(
        control.update_resource(&stale).await.unwrap().outcome,
        Outcome::Conflict
    );
    let again = control.update_resource(&stale).await.unwrap();
    assert_eq!(
        (again.outcome, again.first_outcome),
        (Outcome::Replayed, Some(Outcome::Conflict))
    );
    assert_eq!(catalog.operator().resource(&id("node/web-1")).await.unwrap().version, 2);
}

#[tokio::test]
async fn a_conflict_says_what_differs_and_whether_it_can_be_rebased() {
    let catalog = Catalog::start().await;
    catalog.define().await;
    let (operator, control) = (catalog.operator(), catalog.control());
    put(&operator, "node/web-1", &node()).await;
    control
        .update_resource(&command("node/web-1", 1, observing(json!({"db": {"port": 1}}))))
        .await
        .unwrap();
    let mut relabelled = node();
    relabelled.labels.insert("tier".into(), "web".into());
    put(&operator, "node/web-1", &relabelled).await;

    let stale = providing("node/web-1", 1, "web.http");
    let outcome = control.update_resource(&stale).await.unwrap();
    let conflict = outcome.conflict.unwrap();
    assert_eq!((conflict.expected_version, conflict.current_version), (1, 3));
    let told: Vec<(&str, i64)> = conflict
        .differs
        .iter()
        .map(|d| (d.pointer.as_str(), d.version))
        .collect();
    assert_eq!(told, [("/labels/tier", 3), ("/observed_state/db", 2)]);
    assert!(!conflict.overlaps);
    let rebased = providing("node/web-1", conflict.current_version, "web.http");
    assert_eq!(
        control.update_resource(&rebased).await.unwrap().outcome,
        Outcome::Applied
    );

    let clash = command("node/web-1", 1, observing(json!({"db": {"port": 2}})));
    let clash = control.update_resource(&clash).await.unwrap().conflict.unwrap();
    assert!(clash.overlaps);
    let mut stranger = command("node/web-1", 4, observing(json!({})));
    stranger.uid = Some(ResourceUid::new_v7());
    let stranger = control.update_resource(&stranger).await.unwrap().conflict.unwrap();
    assert!(stranger.other_incarnation && stranger.overlaps);
}

#[tokio::test]
async fn a_rejected_command_changes_nothing_and_names_every_field() {
    let catalog = Catalog::start().await;
    catalog.define().await;
    let (operator, control) = (catalog.operator(), catalog.control());
    let before = put(&operator, "node/web-1", &node()).await;
    let mut bad = providing("node/web-1", 1, "web.http");
    bad.evidence[0].result = contracts::EvidenceResult::Failed;
    bad.changes.lifecycle_status = Some(LifecycleStatus::Planned);
    bad.changes.observed_state_patch = Some(json!("no object"));
    let outcome = control.update_resource(&bad).await.unwrap();
    assert_eq!(outcome.outcome, Outcome::Rejected);
    let places: Vec<&str> = outcome.errors.iter().map(|e| e.pointer.as_str()).collect();
    assert_eq!(
        places,
        [
            "/changes/lifecycle_status",
            "/changes/observed_state_patch",
            "/changes/provided_capabilities/add/0"
        ]
    );
    assert_eq!(operator.resource(&id("node/web-1")).await.unwrap(), before);
}

#[tokio::test]
async fn an_unknown_resource_is_404_and_leaves_the_command_id_free() {
    let catalog = Catalog::start().await;
    let control = catalog.control();
    let early = command("node/web-1", 1, observing(json!({"a": 1})));
    let missing = control.update_resource(&early).await.unwrap_err();
    assert!(matches!(&missing, ClientError::Problem(p) if p.status == 404));
    put(&catalog.operator(), "node/web-1", &node()).await;
    assert_eq!(control.update_resource(&early).await.unwrap().outcome, Outcome::Applied);
}

#[tokio::test]
async fn field_note_53_deduplication_of_commands_outlives_restart_and_replay() {
    let catalog = Catalog::start().await;
    put(&catalog.operator(), "node/web-1", &node()).await;
    let first = command("node/web-1", 1, observing(json!({"a": 1})));
    let rejected = command("node/web-1", 2, observing(json!("no object")));
    catalog.control().update_resource(&first).await.unwrap();
    let refused = catalog.control().update_resource(&rejected).await.unwrap();
    assert_eq!(refused.outcome, Outcome::Rejected);
    let catalog = catalog.restart().await;
    let refused = catalog.control().update_resource(&rejected).await.unwrap();
    assert_eq!(
        (refused.outcome, refused.first_outcome),
        (Outcome::Replayed, Some(Outcome::Rejected))
    );
    for _ in 0..3 {
        let replayed = catalog.control().update_resource(&first).await.unwrap();
        assert_eq!((replayed.outcome, replayed.version), (Outcome::Replayed, Some(2)));
    }
    let events = catalog.events(3).await;
    assert_eq!(events.len(), 3, "created and updated, then updated once");
}

#[tokio::test]
async fn field_note_51_writers_of_different_parts_do_not_undo_each_other_and_of_the_same_part_one_wins() {
    let catalog = Catalog::start().await;
    let (operator, control) = (catalog.operator(), catalog.control());
    put(&operator, "node/web-1", &node()).await;
    let writers = (0..8).map(|n| {
        let control = control.clone();
        async move {
            let key = format!("part{n}");
            let mut version = 1;
            loop {
                let sent = command("node/web-1", version, observing(json!({ key.as_str(): n })));
                let outcome = control.update_resource(&sent).await.unwrap();
                match outcome.conflict {
                    None => return,
                    Some(conflict) => {
                        assert!(!conflict.overlaps, "different parts: {:?}", conflict.differs);
                        version = conflict.current_version;
                    }
                }
            }
        }
    });
    futures::future::join_all(writers).await;
    let now = operator.resource(&id("node/web-1")).await.unwrap();
    assert_eq!((now.version, now.observed_state.len()), (9, 8));

    let same = (0..8).map(|n| {
        let control = control.clone();
        async move {
            let sent = command("node/web-1", 9, observing(json!({"part0": 100 + n})));
            control.update_resource(&sent).await.unwrap()
        }
    });
    let outcomes = futures::future::join_all(same).await;
    let applied = outcomes.iter().filter(|o| o.outcome == Outcome::Applied).count();
    let clashing = outcomes
        .iter()
        .filter(|o| o.conflict.as_ref().is_some_and(|c| c.overlaps))
        .count();
    assert_eq!((applied, clashing), (1, 7));
}

#[tokio::test]
async fn invariant_4_a_provided_capability_has_evidence_that_passed() {
    let catalog = Catalog::start().await;
    catalog.define().await;
    put(&catalog.operator(), "node/web-1", &node()).await;
    let mut unproven = providing("node/web-1", 1, "web.http");
    unproven.evidence.clear();
    let outcome = catalog.control().update_resource(&unproven).await.unwrap();
    assert_eq!(outcome.errors[0].code, "evidence_missing");
    let removal = Changes {
        provided_capabilities: Some(contracts::ProvidedCapabilities {
            remove: vec![dotted("web.http")],
            ..contracts::ProvidedCapabilities::default()
        }),
        ..Changes::default()
    };
    catalog
        .control()
        .update_resource(&providing("node/web-1", 1, "web.http"))
        .await
        .unwrap();
    let removed = catalog
        .control()
        .update_resource(&command("node/web-1", 2, removal))
        .await
        .unwrap();
    assert_eq!(removed.version, Some(3));
    let now = catalog.operator().resource(&id("node/web-1")).await.unwrap();
    assert!(now.provided_capabilities.is_empty());
}
