use api_kit::testing::scrape;
use identity::Role;
use resource_catalog_api::{Client, FeedQuery};
use resource_catalog_server::openapi;

use crate::harness::{Catalog, command, id, node, observing, put};

const RESOURCE: &str = "/v1/resources/{prefix}/{name}";

#[tokio::test]
async fn the_metrics_tell_what_was_done_by_route_and_never_by_id() {
    let catalog = Catalog::start().await;
    let (operator, control) = (catalog.operator(), catalog.control());
    put(&operator, "node/web-1", &node()).await;
    for _ in 0..2 {
        operator.resource(&id("node/web-1")).await.unwrap();
    }
    operator.resource(&id("node/web-9")).await.unwrap_err();
    let nobody = Client::from(client_kit::Client::new(&catalog.base, None).unwrap());
    nobody.resource(&id("node/web-1")).await.unwrap_err();
    let update = command("node/web-1", 1, observing(serde_json::json!({"load": 1})));
    control.update_resource(&update).await.unwrap();
    let nowhere = catalog
        .kit(&[Role::Viewer])
        .get("/no/such/path")
        .json::<serde_json::Value>()
        .await;
    nowhere.unwrap_err();
    let second = FeedQuery {
        after: 1,
        limit: None,
        wait_seconds: Some(20),
    };
    let page = operator.feed(&second).await.unwrap();
    assert_eq!(page.head, 2);

    let told = scrape(&catalog.base).await;
    let answered = |method, route, status| {
        told.value(
            "platform_http_requests_total",
            &[("method", method), ("route", route), ("status", status)],
        )
    };
    assert_eq!(answered("PUT", RESOURCE, "201"), Some(1.0));
    assert_eq!(answered("GET", RESOURCE, "200"), Some(2.0));
    assert_eq!(answered("GET", RESOURCE, "404"), Some(1.0));
    assert_eq!(answered("GET", RESOURCE, "401"), Some(1.0));
    assert_eq!(answered("POST", "/v1/resource-updates", "200"), Some(1.0));
    assert_eq!(answered("GET", "none", "404"), Some(1.0));
    let timed = [("method", "GET"), ("route", RESOURCE)];
    assert_eq!(told.value("platform_http_request_seconds_count", &timed), Some(4.0));
    assert_eq!(
        told.value("platform_http_requests_under_way", &[]),
        Some(1.0),
        "this one"
    );
    assert_eq!(told.value("platform_figures_current", &[]), Some(1.0));
    assert_eq!(told.value("platform_feed_head", &[]), Some(2.0));
    assert_eq!(told.value("platform_feed_waiting", &[]), Some(0.0));
    assert_eq!(told.value("platform_feed_parked", &[]), Some(0.0));
    assert_eq!(told.value("platform_resource_updates_waiting", &[]), Some(0.0));
    assert_eq!(told.value("platform_audit_facts_not_written_total", &[]), Some(0.0));
    let most = [("role", "api"), ("pool", "hot"), ("state", "most")];
    assert_eq!(told.value("platform_database_connections", &most), Some(8.0));
    assert_eq!(told.unbounded(&openapi()), Vec::<String>::new());
}

#[tokio::test]
async fn events_and_facts_that_nobody_carries_on_are_told() {
    let mut catalog = Catalog::start().await;
    let database = catalog.database.clone();
    catalog.stop().await;
    let superuser = database.open_superuser();
    let client = superuser.hot().get().await.unwrap();
    let organization = catalog.organization.as_uuid();
    let acting = "SELECT set_config('app.organization_id', $1::uuid::text, false)";
    client.execute(acting, &[&organization]).await.unwrap();
    let event = "INSERT INTO outbox (organization_id, key, version, kind, event_id, payload, occurred_at) \
        VALUES ($1, 'k', 1, 'x', gen_random_uuid(), '{}', now() - interval '90 seconds')";
    client.execute(event, &[&organization]).await.unwrap();
    let fact = "INSERT INTO audit SELECT gen_random_uuid(), $1, now() - interval '1 hour', 'a', 'b', 'c', true, 'd', '', '', '{}'";
    client.execute(fact, &[&organization]).await.unwrap();
    let idle = catalog.serving_only().await;
    let told = scrape(&idle.base).await;
    assert_eq!(told.value("platform_feed_waiting", &[]), Some(1.0));
    assert!(told.value("platform_feed_oldest_waiting_seconds", &[]) >= Some(90.0));
    assert_eq!(told.value("platform_audit_unchained", &[]), Some(1.0));
    assert!(told.value("platform_audit_oldest_unchained_seconds", &[]) >= Some(3600.0));
}
