//! Every command leaves a fact, allowed or refused, in a chain that shows what was done to it.

use std::collections::BTreeSet;

use ::audit::{AuditFact, AuditQuery, Broken, Verifier};
use api_kit::testing::audited_actions;
use contracts::EvidenceResult;
use identity::Role;
use kernel::id::OperationId;
use resource_catalog_api::{
    ApplyCapabilityDefinition, ApplyResourceType, Client, CreateResource, Edge, EdgeType, ObserveCapability,
    ValidationItem, ValidationRequest,
};
use resource_catalog_server::openapi;
use serde_json::{Map, json};

use crate::harness::{Catalog, command, dotted, evidence, id, node, observing, put};

async fn facts(admin: &Client) -> Vec<AuditFact> {
    admin.audit_facts(&AuditQuery::default()).await.unwrap().items
}

fn admin(catalog: &Catalog) -> Client {
    catalog.client_of(catalog.organization, "person:root", &[Role::Admin])
}

/// Follows the chain until everything that was written is in it.
async fn verify(admin: &Client) -> Result<i64, Broken> {
    loop {
        let head = admin.audit_head().await.unwrap();
        let mut verifier = Verifier::new(head.head);
        let mut more = true;
        while more {
            let page = admin.audit_chain(verifier.after(), 5).await.unwrap();
            page.links.iter().try_for_each(|link| verifier.follow(link))?;
            more = page.next_after.is_some();
        }
        verifier.end_at(&head)?;
        if head.waiting == 0 {
            return Ok(verifier.after());
        }
        tokio::task::yield_now().await;
    }
}

/// Does everything that can be done, once.
async fn do_everything(catalog: &Catalog) {
    let (operator, control) = (catalog.operator(), catalog.control());
    let of_web = ApplyCapabilityDefinition {
        parent: None,
        description: String::new(),
        attribute_schema: None,
    };
    let name = dotted("web.http");
    operator
        .apply_capability_definition(&name, &of_web, None)
        .await
        .unwrap();
    let gpu = ApplyResourceType {
        parent: Some(dotted("compute.node")),
        description: String::new(),
        id_prefix: None,
        desired_state_schema: None,
        observed_state_schema: None,
        lifecycle_transitions: None,
        edges: None,
    };
    operator
        .apply_resource_type(&dotted("compute.node.gpu"), &gpu, None)
        .await
        .unwrap();
    let web = id("node/web-1");
    put(&operator, "node/web-1", &node()).await;
    let mut made = serde_json::to_value(node()).unwrap();
    made["resource_id"] = json!("node/web-2");
    let made: CreateResource = serde_json::from_value(made).unwrap();
    operator.create_resource(&made, "once").await.unwrap();
    let edge = Edge {
        edge_type: EdgeType::BacksUp,
        target: id("node/web-2"),
    };
    operator.add_edge(&web, &edge).await.unwrap();
    operator.remove_edge(&web, &edge).await.unwrap();
    let seen = ObserveCapability {
        attributes: Map::new(),
        evidence: vec![evidence("web.http", EvidenceResult::Passed)],
    };
    operator.observe_capability(&web, &name, &seen).await.unwrap();
    operator.withdraw_capability(&web, &name).await.unwrap();
    let version = operator.resource(&web).await.unwrap().version;
    let update = command("node/web-1", version, observing(json!({"load": 1})));
    control.update_resource(&update).await.unwrap();
    let operation = OperationId::new_v7();
    let held = ValidationRequest {
        operation_id: Some(operation),
        set_finalizers: true,
        resources: vec![ValidationItem::exists(web)],
    };
    control.validate(&held).await.unwrap();
    control.release_finalizers(operation).await.unwrap();
}

#[tokio::test]
async fn every_write_of_the_api_leaves_a_fact_of_what_it_did() {
    let catalog = Catalog::start().await;
    do_everything(&catalog).await;
    let facts = facts(&admin(&catalog)).await;
    assert!(
        facts.iter().all(|fact| fact.allowed && fact.result == "accepted"),
        "{facts:#?}"
    );
    let told: BTreeSet<String> = facts.iter().map(|fact| fact.action.clone()).collect();
    assert_eq!(told, audited_actions(&openapi()));
    assert_eq!(facts.len(), told.len(), "each was done once: {facts:#?}");
    let of = |action: &str| facts.iter().find(|fact| fact.action == action).unwrap();
    for (action, actor, subject) in [
        ("resource.put", "person:op", "resources/node/web-1"),
        ("resource.create", "person:op", "resources/node/web-2"),
        (
            "edge.put",
            "person:op",
            "resources/node/web-1/edges/backs_up/node/web-2",
        ),
        ("resource.update", "service:control-plane", "resources/node/web-1"),
    ] {
        let fact = of(action);
        assert_eq!((fact.actor.as_str(), fact.subject.as_str()), (actor, subject));
        assert_eq!(fact.organization_id, catalog.organization);
        assert_eq!(fact.remote_address, "127.0.0.1");
    }
}

#[tokio::test]
async fn a_refused_command_leaves_a_fact_with_the_code_it_was_refused_with() {
    let catalog = Catalog::start().await;
    let (operator, control) = (catalog.operator(), catalog.control());
    put(&operator, "node/web-1", &node()).await;
    let stale = command("node/web-1", 7, observing(json!({"load": 1})));
    control.update_resource(&stale).await.unwrap();
    let viewer = catalog.client_of(catalog.organization, "person:eve", &[Role::Viewer]);
    viewer
        .apply_resource(&id("node/web-1"), &node(), None)
        .await
        .unwrap_err();
    let mut of_no_type = node();
    of_no_type.resource_type = dotted("no.such.type");
    operator
        .apply_resource(&id("node/web-2"), &of_no_type, None)
        .await
        .unwrap_err();
    // What is so already is a command, too.
    put(&operator, "node/web-1", &node()).await;
    let told: Vec<(String, String, bool, String)> = facts(&admin(&catalog))
        .await
        .into_iter()
        .map(|fact| (fact.actor, fact.action, fact.allowed, fact.result))
        .collect();
    let expected = [
        ("person:op", "resource.put", true, "accepted"),
        ("service:control-plane", "resource.update", false, "update_conflict"),
        ("person:eve", "resource.put", false, "forbidden"),
        ("person:op", "resource.put", false, "validation_failed"),
        ("person:op", "resource.put", true, "accepted"),
    ];
    let expected =
        expected.map(|(actor, action, allowed, result)| (actor.into(), action.into(), allowed, result.into()));
    assert_eq!(told, expected);
}

#[tokio::test]
async fn who_shows_no_token_that_is_believed_leaves_nothing_and_who_is_no_admin_reads_nothing() {
    let catalog = Catalog::start().await;
    let nobody = Client::from(client_kit::Client::new(&catalog.base, None).unwrap());
    nobody
        .apply_resource(&id("node/web-1"), &node(), None)
        .await
        .unwrap_err();
    assert_eq!(facts(&admin(&catalog)).await, []);
    for result in [
        catalog.operator().audit_facts(&AuditQuery::default()).await.map(drop),
        catalog.operator().audit_chain(0, 10).await.map(drop),
        catalog.operator().audit_head().await.map(drop),
    ] {
        assert_eq!(result.unwrap_err().code(), Some("forbidden"));
    }
}

#[tokio::test]
async fn the_chain_is_whole_and_shows_a_fact_that_was_changed() {
    let catalog = Catalog::start().await;
    do_everything(&catalog).await;
    let admin = admin(&catalog);
    let written = facts(&admin).await.len();
    assert_eq!(verify(&admin).await.unwrap(), i64::try_from(written).unwrap());
    let superuser = catalog.database.open_superuser();
    let client = superuser.hot().get().await.unwrap();
    let changed = client
        .execute("UPDATE audit SET actor = 'person:eve' WHERE action = 'edge.put'", &[])
        .await;
    assert_eq!(changed.unwrap(), 1);
    assert!(matches!(verify(&admin).await, Err(Broken::Changed { .. })));
}
