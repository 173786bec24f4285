use database::ServiceRole;
use futures::StreamExt as _;
use identity::Role;
use kernel::id::OrganizationId;
use resource_catalog_api::{
    FeedQuery, ListDefinitionsQuery, ListEdgesQuery, ListResourcesQuery, ValidationItem, ValidationRequest,
};
use serde_json::json;
use sqlx::Row as _;

use crate::harness::{Catalog, command, dotted, id, node, observing, put};

/// Every table that holds something of an organization.
const TABLES: [&str; 12] = [
    "registries",
    "resource_types",
    "capability_definitions",
    "resources",
    "resource_versions",
    "provided_capabilities",
    "edges",
    "resource_update_commands",
    "finalizers",
    "idempotency_keys",
    "outbox",
    "feed",
];

#[tokio::test]
async fn invariant_10_another_organization_learns_nothing_over_http() {
    let catalog = Catalog::start().await;
    catalog.define().await;
    put(&catalog.operator(), "node/web-1", &node()).await;
    catalog.events(2).await;
    let other = OrganizationId::new_v7();
    let stranger = catalog.client_of(other, "person:eve", &[Role::Operator, Role::Admin]);
    let control = catalog.client_of(other, "service:control-plane", &[Role::Service]);
    assert_eq!(
        stranger.resource(&id("node/web-1")).await.unwrap_err().status(),
        Some(404)
    );
    assert_eq!(
        stranger
            .edges(&id("node/web-1"), &ListEdgesQuery::default())
            .await
            .unwrap_err()
            .status(),
        Some(404)
    );
    assert_eq!(
        stranger
            .capability_definition(&dotted("web.http"))
            .await
            .unwrap_err()
            .status(),
        Some(404)
    );
    assert!(
        stranger
            .resources(&ListResourcesQuery::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    let definitions = stranger
        .capability_definitions(&ListDefinitionsQuery::default())
        .await
        .unwrap();
    assert!(definitions.items.is_empty());
    assert!(stranger.feed(&FeedQuery::default()).await.unwrap().events.is_empty());
    let lines: Vec<_> = stranger.snapshot().await.unwrap().collect().await;
    assert_eq!(lines.len(), 2, "a head and an end");
    let update = command("node/web-1", 1, observing(json!({"a": 1})));
    assert_eq!(control.update_resource(&update).await.unwrap_err().status(), Some(404));
    let ask = ValidationRequest {
        operation_id: None,
        set_finalizers: false,
        resources: vec![ValidationItem::exists(id("node/web-1"))],
    };
    assert!(control.validate(&ask).await.unwrap().resources[0].current.is_none());
    // The same id is free for them, and theirs alone.
    let theirs = put(&stranger, "node/web-1", &node()).await;
    let ours = catalog.operator().resource(&id("node/web-1")).await.unwrap();
    assert_ne!(theirs.uid, ours.uid);
    // A command id that is taken here is not taken there.
    assert_eq!(
        catalog.control().update_resource(&update).await.unwrap().version,
        Some(2)
    );
    assert_eq!(control.update_resource(&update).await.unwrap().version, Some(2));
}

#[tokio::test]
async fn the_api_role_sees_nothing_of_another_organization_even_in_raw_sql() {
    let catalog = Catalog::start().await;
    catalog.define().await;
    put(&catalog.operator(), "node/web-1", &node()).await;
    catalog.events(2).await;
    let api = catalog.database.open(ServiceRole::Api);
    for organization in [None, Some(OrganizationId::new_v7())] {
        let mut transaction = match organization {
            Some(other) => api.begin(other).await.unwrap(),
            None => api.sqlx().begin().await.unwrap(),
        };
        for table in [
            "resources",
            "resource_versions",
            "capability_definitions",
            "registries",
            "feed",
        ] {
            let sql = format!("SELECT count(*) FROM {table}");
            let row = sqlx::query(sqlx::AssertSqlSafe(sql))
                .fetch_one(&mut *transaction)
                .await
                .unwrap();
            assert_eq!(row.get::<i64, _>(0), 0, "{table} with {organization:?}");
        }
        let touched = sqlx::query("UPDATE resources SET version = version + 1")
            .execute(&mut *transaction)
            .await;
        assert_eq!(touched.unwrap().rows_affected(), 0);
    }
    let mut transaction = api.begin(OrganizationId::new_v7()).await.unwrap();
    let smuggled = sqlx::query("INSERT INTO registries (organization_id, revision) VALUES ($1, 1)")
        .bind(catalog.organization.as_uuid())
        .execute(&mut *transaction)
        .await;
    assert!(smuggled.is_err(), "a row of another organization cannot be written");
}

#[tokio::test]
async fn every_table_of_an_organization_forces_row_level_security() {
    let catalog = Catalog::start().await;
    let database = catalog.database.open_superuser();
    let forced: Vec<String> = sqlx::query_scalar(
        "SELECT c.relname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
         WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND a.attname = 'organization_id'
             AND c.relrowsecurity AND c.relforcerowsecurity",
    )
    .fetch_all(database.sqlx())
    .await
    .unwrap();
    for table in TABLES {
        assert!(forced.iter().any(|f| f == table), "{table}");
    }
    let all: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
         WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND a.attname = 'organization_id'",
    )
    .fetch_one(database.sqlx())
    .await
    .unwrap();
    assert_eq!(i64::try_from(forced.len()).unwrap(), all, "none without");
}
