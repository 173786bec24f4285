use contracts::{HealthStatus, LifecycleStatus};
use resource_catalog_api::{ApplyResource, ClientError, CreateResource, Edge, EdgeType, ListEdgesQuery, pin_of};
use serde_json::json;

use crate::harness::{Catalog, dotted, id, map, node, put};

fn rack() -> ApplyResource {
    ApplyResource {
        resource_type: dotted("topology.rack"),
        desired_state: serde_json::Map::new(),
        ..node()
    }
}

fn creating(name: &str) -> CreateResource {
    let asked = node();
    CreateResource {
        resource_id: id(name),
        resource_type: asked.resource_type,
        environment: asked.environment,
        labels: asked.labels,
        annotations: asked.annotations,
        lifecycle_status: asked.lifecycle_status,
        desired_state: asked.desired_state,
        connection: asked.connection,
        edges: None,
    }
}

fn codes(error: &ClientError) -> Vec<(String, String)> {
    let errors = &error.problem().unwrap().errors;
    errors.iter().map(|e| (e.pointer.clone(), e.code.clone())).collect()
}

#[tokio::test]
async fn a_resource_is_what_was_asked_and_applying_it_again_makes_no_version() {
    let catalog = Catalog::start().await;
    let operator = catalog.operator();
    let first = operator.apply_resource(&id("node/web-1"), &node(), None).await.unwrap();
    assert_eq!((first.status, first.version), (201, Some(1)));
    let made = first.body;
    assert_eq!(made.lifecycle_status, LifecycleStatus::Running);
    assert_eq!(made.health.status, HealthStatus::Unknown);
    assert_eq!(made.pin, pin_of(&made));
    let again = operator
        .apply_resource(&id("node/web-1"), &node(), Some(1))
        .await
        .unwrap();
    assert_eq!((again.status, again.version), (200, Some(1)));
    assert_eq!(operator.resource(&id("node/web-1")).await.unwrap(), made);

    let mut moved = node();
    moved.connection = map(json!({"address": "127.0.0.12"}));
    let moved = put(&operator, "node/web-1", &moved).await;
    assert_eq!((moved.version, moved.desired_generation, moved.uid), (2, 2, made.uid));
    assert_ne!(moved.pin, made.pin);
    assert_eq!(catalog.events(3).await.len(), 3, "created and updated, then updated");
}

#[tokio::test]
async fn a_write_for_another_version_is_refused_with_the_current_one() {
    let catalog = Catalog::start().await;
    let operator = catalog.operator();
    put(&operator, "node/web-1", &node()).await;
    let mut changed = node();
    changed.labels.clear();
    let refused = operator
        .apply_resource(&id("node/web-1"), &changed, Some(7))
        .await
        .unwrap_err();
    assert_eq!(
        (refused.status(), refused.code()),
        (Some(412), Some("version_mismatch"))
    );
    assert_eq!(refused.problem().unwrap().extensions["current_version"], json!(1));
    let repeated = operator
        .apply_resource(&id("node/web-1"), &node(), Some(7))
        .await
        .unwrap();
    assert_eq!(repeated.version, Some(1), "what is so already is no write");
    let missing = operator
        .apply_resource(&id("node/web-9"), &changed, Some(7))
        .await
        .unwrap_err();
    assert_eq!(missing.status(), Some(412));
}

#[tokio::test]
async fn a_refused_write_names_every_fault_and_writes_and_emits_nothing() {
    let catalog = Catalog::start().await;
    let operator = catalog.operator();
    let mut bad = node();
    bad.environment = Some("No Good".into());
    bad.labels.insert("_".into(), "x y".into());
    bad.desired_state = map(json!({"os": 7, "packages": [1]}));
    bad.edges = Some(vec![Edge {
        edge_type: EdgeType::PartOf,
        target: id("rack/none"),
    }]);
    let refused = operator
        .apply_resource(&id("node/web-1"), &bad, None)
        .await
        .unwrap_err();
    let expected = [
        ("/desired_state/os", "schema_violation"),
        ("/desired_state/packages/0", "schema_violation"),
        ("/edges/0", "unknown_target"),
        ("/environment", "invalid_environment"),
        // Once for the key, once for the value.
        ("/labels/_", "invalid_label"),
        ("/labels/_", "invalid_label"),
    ]
    .map(|(p, c)| (p.to_owned(), c.to_owned()));
    assert_eq!(codes(&refused), expected);
    bad.resource_type = dotted("no.such");
    let refused = operator
        .apply_resource(&id("node/web-1"), &bad, None)
        .await
        .unwrap_err();
    assert_eq!(
        codes(&refused),
        [("/resource_type".to_owned(), "unknown_type".to_owned())]
    );
    let wrong_id = operator
        .apply_resource(&id("rack/web-1"), &node(), None)
        .await
        .unwrap_err();
    assert_eq!(
        codes(&wrong_id),
        [("/resource_type".to_owned(), "prefix_mismatch".to_owned())]
    );
    assert_eq!(
        operator.resource(&id("node/web-1")).await.unwrap_err().status(),
        Some(404)
    );
    put(&operator, "node/web-1", &node()).await;
    assert_eq!(catalog.events(1).await.len(), 2, "only of the write that was accepted");
}

#[tokio::test]
async fn creating_twice_by_one_key_gives_the_first_answer_and_by_another_a_conflict() {
    let catalog = Catalog::start().await;
    let operator = catalog.operator();
    let first = operator
        .create_resource(&creating("node/web-1"), "key-1")
        .await
        .unwrap();
    assert_eq!((first.status, first.version), (201, Some(1)));
    let again = operator
        .create_resource(&creating("node/web-1"), "key-1")
        .await
        .unwrap();
    assert_eq!(again, first);
    let other_body = operator
        .create_resource(&creating("node/web-2"), "key-1")
        .await
        .unwrap_err();
    assert_eq!(other_body.code(), Some("idempotency_key_reused"));
    let other_key = operator
        .create_resource(&creating("node/web-1"), "key-2")
        .await
        .unwrap_err();
    assert_eq!(
        (other_key.status(), other_key.code()),
        (Some(409), Some("resource_exists"))
    );
}

#[tokio::test]
async fn field_note_50_a_name_whose_creation_failed_is_free_again() {
    let catalog = Catalog::start().await;
    let operator = catalog.operator();
    let mut bad = creating("node/web-1");
    bad.labels.insert("bad key!".into(), String::new());
    let refused = operator.create_resource(&bad, "key-1").await.unwrap_err();
    assert_eq!(refused.status(), Some(422));
    let made = operator
        .create_resource(&creating("node/web-1"), "key-1")
        .await
        .unwrap();
    assert_eq!(made.body.version, 1);
}

#[tokio::test]
async fn an_edge_is_a_version_of_its_source_and_adding_it_twice_is_one() {
    let catalog = Catalog::start().await;
    let operator = catalog.operator();
    put(&operator, "rack/a", &rack()).await;
    put(&operator, "rack/b", &rack()).await;
    put(&operator, "node/web-1", &node()).await;
    let edge = |rack: &str| Edge {
        edge_type: EdgeType::PartOf,
        target: id(rack),
    };
    let source = id("node/web-1");
    assert_eq!(operator.add_edge(&source, &edge("rack/a")).await.unwrap().version, 2);
    assert_eq!(operator.add_edge(&source, &edge("rack/a")).await.unwrap().version, 2);
    assert_eq!(operator.resource(&id("rack/a")).await.unwrap().version, 1);
    let second = operator.add_edge(&source, &edge("rack/b")).await.unwrap_err();
    assert_eq!(codes(&second), [(String::new(), "too_many_targets".to_owned())]);
    let edges = operator.edges(&source, &ListEdgesQuery::default()).await.unwrap();
    assert_eq!(edges.items, [edge("rack/a")]);
    assert_eq!(operator.remove_edge(&source, &edge("rack/a")).await.unwrap().version, 3);
    assert_eq!(operator.remove_edge(&source, &edge("rack/a")).await.unwrap().version, 3);
}

#[tokio::test]
async fn edges_that_close_a_circle_are_refused_however_many_writers_race() {
    let catalog = Catalog::start().await;
    let operator = catalog.operator();
    let names: Vec<String> = (0..4).map(|n| format!("node/n{n}")).collect();
    for name in &names {
        put(&operator, name, &node()).await;
    }
    let ring = (0..4).map(|n| {
        let (operator, source, target) = (operator.clone(), id(&names[n]), id(&names[(n + 1) % 4]));
        async move {
            let edge = Edge {
                edge_type: EdgeType::BacksUp,
                target,
            };
            operator.add_edge(&source, &edge).await.is_ok()
        }
    });
    let added = futures::future::join_all(ring).await;
    assert_eq!(added.iter().filter(|ok| **ok).count(), 3, "a ring of four takes three");
}

#[tokio::test]
async fn a_resource_may_be_asked_for_with_its_edges_in_one_version() {
    let catalog = Catalog::start().await;
    let operator = catalog.operator();
    put(&operator, "rack/a", &rack()).await;
    let mut asked = node();
    asked.edges = Some(vec![Edge {
        edge_type: EdgeType::PartOf,
        target: id("rack/a"),
    }]);
    let made = put(&operator, "node/web-1", &asked).await;
    assert_eq!((made.version, made.edges.len()), (1, 1));
    asked.edges = Some(Vec::new());
    let made = put(&operator, "node/web-1", &asked).await;
    assert_eq!((made.version, made.edges.len()), (2, 0));
}
