use api_kit::testing::Walk;
use resource_catalog_api::{ApplyResourceType, Edge, EdgeType};

use crate::harness::{Catalog, dotted, id, node, put};

#[tokio::test]
async fn every_operation_keeps_the_rules_of_every_api() {
    let catalog = Catalog::start().await;
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
    let resource = "/v1/resources/{prefix}/{name}";
    let walked = Walk::new(catalog.base.clone(), catalog.minter(), catalog.organization)
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
        .run(&resource_catalog_server::openapi())
        .await;
    assert!(
        walked.faults.is_empty(),
        "{} of {} checks failed:\n{}",
        walked.faults.len(),
        walked.checks,
        walked.faults.join("\n")
    );
}
