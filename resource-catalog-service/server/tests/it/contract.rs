use api_kit::testing::Walk;
use contracts::EvidenceResult;
use kernel::id::OperationId;
use resource_catalog_api::{ApplyResourceType, Edge, EdgeType, Outcome, ValidationItem, ValidationRequest};
use serde_json::json;

use crate::harness::{Catalog, dotted, evidence, id, node, providing, put};

/// What there is to walk on.
async fn walk(catalog: &Catalog) -> Walk {
    catalog.define().await;
    let operator = catalog.operator();
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
    put(&operator, "node/web-1", &node()).await;
    put(&operator, "node/web-2", &node()).await;
    let edge = Edge {
        edge_type: EdgeType::BacksUp,
        target: id("node/web-2"),
    };
    operator.add_edge(&id("node/web-1"), &edge).await.unwrap();
    let version = operator.resource(&id("node/web-1")).await.unwrap().version;
    let provided = providing("node/web-1", version, "web.http");
    let updated = catalog.control().update_resource(&provided).await.unwrap();
    assert_eq!(updated.outcome, Outcome::Applied);
    let operation = OperationId::new_v7();
    let held = ValidationRequest {
        operation_id: Some(operation),
        set_finalizers: true,
        resources: vec![ValidationItem::exists(id("node/web-1"))],
    };
    assert!(catalog.control().validate(&held).await.unwrap().finalizers_set);
    let mut other_type = serde_json::to_value(&gpu).unwrap();
    other_type["description"] = json!("described");
    let mut other_labels = serde_json::to_value(node()).unwrap();
    other_labels["labels"] = json!({"rack": "another"});
    let mut made = serde_json::to_value(node()).unwrap();
    made["resource_id"] = json!("node/web-9");
    let resource = "/v1/resources/{prefix}/{name}";
    Walk::new(catalog.base.clone(), catalog.minter(), catalog.organization)
        .object("/v1/resource-types/{type_name}", "/v1/resource-types/compute.node.gpu")
        .object(
            "/v1/capability-definitions/{capability}",
            "/v1/capability-definitions/web.http",
        )
        .object(resource, "/v1/resources/node/web-1")
        .object(format!("{resource}/edges"), "/v1/resources/node/web-1/edges")
        .object(
            format!("{resource}/edges/{{edge_type}}/{{target_prefix}}/{{target_name}}"),
            "/v1/resources/node/web-1/edges/backs_up/node/web-2",
        )
        .object(
            format!("{resource}/capabilities/{{capability}}"),
            "/v1/resources/node/web-1/capabilities/web.http",
        )
        .object("/v1/finalizers/{operation_id}", format!("/v1/finalizers/{operation}"))
        .body("PUT /v1/resource-types/{type_name}", other_type)
        .body(
            "PUT /v1/capability-definitions/{capability}",
            json!({"description": "again"}),
        )
        .body(format!("PUT {resource}"), other_labels)
        .body(
            format!("PUT {resource}/capabilities/{{capability}}"),
            json!({"evidence": [evidence("web.http", EvidenceResult::Passed)]}),
        )
        .in_effect(format!(
            "PUT {resource}/edges/{{edge_type}}/{{target_prefix}}/{{target_name}}"
        ))
        .body("POST /v1/resources", made)
        .not_generated(
            "GET /v1/watch/resources",
            "its answer does not end; what it refuses and how it resumes is walked",
        )
}

#[tokio::test]
async fn every_operation_keeps_the_rules_of_every_api() {
    let catalog = Catalog::start().await;
    let walked = walk(&catalog).await.run(&resource_catalog_server::openapi()).await;
    assert!(
        walked.faults.is_empty(),
        "{} of {} checks failed:\n{}",
        walked.faults.len(),
        walked.checks,
        walked.faults.join("\n")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_to_generated_requests_is_as_the_document_says() {
    let catalog = Catalog::start().await;
    let document = resource_catalog_server::openapi();
    let generated = walk(&catalog)
        .await
        .as_service("control-plane")
        .generate(&document)
        .await;
    assert!(generated.holds, "{}", generated.report);
    println!("{}", generated.report);
}
