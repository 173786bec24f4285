use contracts::LifecycleStatus;
use kernel::id::{OperationId, ResourceUid};
use resource_catalog_api::{CapabilityRequirement, FaultCode, PinInputs, ValidationItem, ValidationRequest};
use serde_json::json;

use crate::harness::{Catalog, command, dotted, id, node, observing, providing, put};

fn asking(resources: Vec<ValidationItem>) -> ValidationRequest {
    ValidationRequest {
        operation_id: None,
        set_finalizers: false,
        resources,
    }
}

#[tokio::test]
async fn each_expectation_that_does_not_hold_is_named_and_the_resource_told_as_it_is() {
    let catalog = Catalog::start().await;
    catalog.define().await;
    let control = catalog.control();
    let made = put(&catalog.operator(), "node/web-1", &node()).await;
    let good = ValidationItem {
        uid: Some(made.uid),
        expected_version: Some(1),
        expected_pin: Some(made.pin),
        lifecycle_in: vec![LifecycleStatus::Running],
        ..ValidationItem::exists(id("node/web-1"))
    };
    let answer = control.validate(&asking(vec![good.clone()])).await.unwrap();
    assert!(answer.valid && !answer.finalizers_set);
    let current = answer.resources[0].current.as_ref().unwrap();
    assert_eq!(current.pin_inputs.connection, made.connection);
    assert_eq!((current.uid, current.version, current.pin), (made.uid, 1, made.pin));

    let bad = ValidationItem {
        uid: Some(ResourceUid::new_v7()),
        expected_version: Some(4),
        expected_pin: Some(kernel::Sha256Digest::of(b"other")),
        lifecycle_in: vec![LifecycleStatus::Planned],
        capabilities: vec![CapabilityRequirement {
            capability: dotted("web.http"),
            version: None,
        }],
        ..good
    };
    let missing = ValidationItem::exists(id("node/none"));
    let answer = control.validate(&asking(vec![bad, missing])).await.unwrap();
    let codes: Vec<Vec<FaultCode>> = answer
        .resources
        .iter()
        .map(|r| r.faults.iter().map(|f| f.code).collect())
        .collect();
    assert!(!answer.valid);
    assert_eq!(
        codes,
        [
            vec![
                FaultCode::OtherIncarnation,
                FaultCode::VersionMoved,
                FaultCode::LifecycleNotAllowed,
                FaultCode::CapabilityMissing,
                FaultCode::PinMoved
            ],
            vec![FaultCode::NotFound]
        ]
    );
}

#[tokio::test]
async fn a_neighbours_update_moves_the_version_but_not_what_a_plan_read() {
    let catalog = Catalog::start().await;
    catalog.define().await;
    let control = catalog.control();
    let made = put(&catalog.operator(), "node/web-1", &node()).await;
    let read = vec![dotted("os.linux")];
    let restricted = PinInputs::of(&made).restricted_to(&read).digest();
    control
        .update_resource(&command("node/web-1", 1, observing(json!({"load": 1}))))
        .await
        .unwrap();
    let whole = ValidationItem {
        expected_pin: Some(made.pin),
        ..ValidationItem::exists(id("node/web-1"))
    };
    assert!(control.validate(&asking(vec![whole.clone()])).await.unwrap().valid);
    control
        .update_resource(&providing("node/web-1", 2, "web.http"))
        .await
        .unwrap();
    assert!(!control.validate(&asking(vec![whole])).await.unwrap().valid);
    let of_what_was_read = ValidationItem {
        expected_pin: Some(restricted),
        pin_capabilities: Some(read),
        ..ValidationItem::exists(id("node/web-1"))
    };
    assert!(control.validate(&asking(vec![of_what_was_read])).await.unwrap().valid);
}

#[tokio::test]
async fn finalizers_bump_no_version_and_are_set_all_or_none() {
    let catalog = Catalog::start().await;
    let control = catalog.control();
    put(&catalog.operator(), "node/web-1", &node()).await;
    put(&catalog.operator(), "node/web-2", &node()).await;
    let operation = OperationId::new_v7();
    let with_finalizers = |names: &[&str]| ValidationRequest {
        operation_id: Some(operation),
        set_finalizers: true,
        resources: names.iter().map(|n| ValidationItem::exists(id(n))).collect(),
    };
    let database = catalog.database.open_superuser();
    let held = async || -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM finalizers WHERE operation_id = $1")
            .bind(operation.as_uuid())
            .fetch_one(database.sqlx())
            .await
            .unwrap()
    };
    let refused = control
        .validate(&with_finalizers(&["node/web-1", "node/none"]))
        .await
        .unwrap();
    assert!(!refused.finalizers_set);
    assert_eq!(held().await, 0);
    for _ in 0..2 {
        let set = control
            .validate(&with_finalizers(&["node/web-2", "node/web-1"]))
            .await
            .unwrap();
        assert!(set.finalizers_set);
        assert_eq!(held().await, 2);
    }
    assert_eq!(catalog.operator().resource(&id("node/web-1")).await.unwrap().version, 1);
    control.release_finalizers(operation).await.unwrap();
    control.release_finalizers(operation).await.unwrap();
    assert_eq!(held().await, 0);
    assert_eq!(catalog.events(4).await.len(), 4, "two creations and nothing else");
}

#[tokio::test]
async fn a_validation_that_makes_no_sense_is_refused_in_every_field() {
    let catalog = Catalog::start().await;
    let control = catalog.control();
    let twice = ValidationItem {
        capabilities: vec![CapabilityRequirement {
            capability: dotted("web.http"),
            version: Some("not a range".into()),
        }],
        ..ValidationItem::exists(id("node/web-1"))
    };
    let request = ValidationRequest {
        operation_id: None,
        set_finalizers: true,
        resources: vec![ValidationItem::exists(id("node/web-1")), twice],
    };
    let refused = control.validate(&request).await.unwrap_err();
    let problem = refused.problem().unwrap();
    let places: Vec<&str> = problem.errors.iter().map(|e| e.pointer.as_str()).collect();
    assert_eq!(
        places,
        ["/operation_id", "/resources/1", "/resources/1/capabilities/0/version"]
    );
    assert_eq!(control.validate(&asking(vec![])).await.unwrap_err().status(), Some(422));
}
