use resource_catalog_api::{
    ApplyCapabilityDefinition, ApplyResourceType, EdgeRule, EdgeType, FieldError, ListDefinitionsQuery, OnDelete,
    Transition,
};
use serde_json::json;

use crate::harness::{Catalog, dotted, map, node, put};

fn derived(parent: &str) -> ApplyResourceType {
    ApplyResourceType {
        parent: Some(dotted(parent)),
        description: String::new(),
        id_prefix: None,
        desired_state_schema: None,
        observed_state_schema: None,
        lifecycle_transitions: None,
        edges: None,
    }
}

fn places(errors: &[FieldError]) -> Vec<(&str, &str)> {
    errors.iter().map(|e| (e.pointer.as_str(), e.code.as_str())).collect()
}

#[tokio::test]
async fn registering_what_is_registered_makes_no_version() {
    let catalog = Catalog::start().await;
    let operator = catalog.operator();
    let name = dotted("compute.node.gpu");
    let first = operator
        .apply_resource_type(&name, &derived("compute.node"), None)
        .await
        .unwrap();
    assert_eq!((first.status, first.version), (201, Some(1)));
    let again = operator
        .apply_resource_type(&name, &derived("compute.node"), None)
        .await
        .unwrap();
    assert_eq!((again.status, again.version), (200, Some(1)));
    let mut changed = derived("compute.node");
    changed.description = "with an accelerator".into();
    let changed = operator.apply_resource_type(&name, &changed, Some(1)).await.unwrap();
    assert_eq!((changed.status, changed.version), (200, Some(2)));
    let stale = operator
        .apply_resource_type(&name, &derived("compute.node"), Some(1))
        .await;
    let stale = stale.unwrap_err();
    assert_eq!(stale.status(), Some(412));
    assert_eq!(stale.problem().unwrap().extensions["current_version"], json!(2));
}

#[tokio::test]
async fn a_derived_type_narrows_and_every_fault_of_a_wider_one_is_named() {
    let catalog = Catalog::start().await;
    let operator = catalog.operator();
    let mut wide = derived("compute.node");
    wide.lifecycle_transitions = Some(vec![Transition {
        from: contracts::LifecycleStatus::Decommissioned,
        to: vec![contracts::LifecycleStatus::Running],
    }]);
    wide.edges = Some(vec![EdgeRule {
        edge_type: EdgeType::PartOf,
        targets: vec![dotted("data.database"), dotted("no.such")],
        max_targets: Some(3),
        max_sources: None,
        cycles_allowed: true,
        on_delete: OnDelete::Restrict,
        carries_health: false,
    }]);
    let refused = operator
        .apply_resource_type(&dotted("compute.node.wide"), &wide, None)
        .await
        .unwrap_err();
    assert_eq!(
        places(&refused.problem().unwrap().errors),
        [
            ("/edges/0/cycles_allowed", "widens_parent"),
            ("/edges/0/max_targets", "widens_parent"),
            ("/edges/0/targets", "widens_parent"),
            ("/edges/0/targets/1", "unknown_type"),
            ("/lifecycle_transitions", "widens_parent"),
        ]
    );
    assert_eq!(
        operator
            .resource_type(&dotted("compute.node.wide"))
            .await
            .unwrap_err()
            .status(),
        Some(404)
    );
}

#[tokio::test]
async fn the_built_in_taxonomy_is_listed_and_cannot_be_changed() {
    let catalog = Catalog::start().await;
    let operator = catalog.operator();
    let query = ListDefinitionsQuery {
        limit: Some(5),
        cursor: None,
    };
    let first = operator.resource_types(&query).await.unwrap();
    assert_eq!(first.items.len(), 5);
    let rest = ListDefinitionsQuery {
        limit: Some(1_000),
        cursor: first.next_cursor,
    };
    let rest = operator.resource_types(&rest).await.unwrap();
    let names: Vec<String> = first
        .items
        .iter()
        .chain(&rest.items)
        .map(|t| t.name.to_string())
        .collect();
    assert!(
        names.is_sorted() && names.contains(&"topology.rack".to_owned()),
        "{names:?}"
    );
    let refused = operator
        .apply_resource_type(&dotted("compute.node"), &derived("compute.cluster"), None)
        .await;
    assert_eq!(
        places(&refused.unwrap_err().problem().unwrap().errors),
        [("", "built_in")]
    );
}

#[tokio::test]
async fn a_schema_binds_states_from_its_registration_on_and_ratchets() {
    let catalog = Catalog::start().await;
    let operator = catalog.operator();
    let name = dotted("compute.node.web");
    operator
        .apply_resource_type(&name, &derived("compute.node"), None)
        .await
        .unwrap();
    let mut asked = node();
    asked.resource_type = name.clone();
    asked.desired_state = map(json!({"port": "http", "tls": true}));
    put(&operator, "node/web-1", &asked).await;
    let mut strict = derived("compute.node");
    strict.desired_state_schema = Some(json!({"properties": {"port": {"type": "integer"}}}));
    operator.apply_resource_type(&name, &strict, None).await.unwrap();
    asked.desired_state = map(json!({"port": "http", "tls": false}));
    let kept = put(&operator, "node/web-1", &asked).await;
    assert_eq!(kept.version, 2);
    asked.desired_state = map(json!({"port": "https"}));
    let refused = operator
        .apply_resource(&"node/web-1".parse().unwrap(), &asked, None)
        .await
        .unwrap_err();
    assert_eq!(
        places(&refused.problem().unwrap().errors),
        [("/desired_state/port", "schema_violation")]
    );
}

#[tokio::test]
async fn a_capability_definition_inherits_and_its_parent_is_fixed() {
    let catalog = Catalog::start().await;
    catalog.define().await;
    let operator = catalog.operator();
    let debian = operator
        .capability_definition(&dotted("os.linux.debian"))
        .await
        .unwrap();
    assert_eq!(debian.ancestors, [dotted("os.linux")]);
    let moved = ApplyCapabilityDefinition {
        parent: Some(dotted("web.http")),
        description: String::new(),
        attribute_schema: Some(json!({"type": "nonsense"})),
    };
    let refused = operator
        .apply_capability_definition(&dotted("os.linux.debian"), &moved, None)
        .await;
    assert_eq!(
        places(&refused.unwrap_err().problem().unwrap().errors),
        [("/parent", "parent_fixed")]
    );
    let listed = operator
        .capability_definitions(&ListDefinitionsQuery::default())
        .await
        .unwrap();
    let names: Vec<String> = listed.items.iter().map(|c| c.name.to_string()).collect();
    assert_eq!(names, ["os.linux", "os.linux.debian", "web.http"]);
}
