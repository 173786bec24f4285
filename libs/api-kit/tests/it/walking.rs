use api_kit::testing::Walk;
use api_kit::{AccessTable, Rule};
use axum::Json;
use axum::routing::{get, post};
use utoipa::openapi::OpenApi;

use crate::live::Live;
use crate::notebook;

async fn walk(live: &Live) -> api_kit::testing::Walked {
    let note = live.note("first\nsecond").await;
    Walk::new(&live.url, live.minter.clone(), live.organization)
        .object("/v1/notes/{id}", &note)
        .object("/v1/notes/{id}/lines", format!("{note}/lines"))
        .without_object("/v1/blobs/{name}", "only taken in, never kept")
        .body("POST /v1/notes", serde_json::json!({"body": "second"}))
        .body("PUT /v1/notes/{id}", serde_json::json!({"body": "third"}))
        .run(&live.api.openapi)
        .await
}

#[tokio::test]
async fn every_rule_holds_at_every_operation_of_a_service_that_uses_the_layers() {
    let live = Live::start().await;
    let walked = walk(&live).await;
    assert_eq!(walked.faults, Vec::<String>::new());
    assert!(walked.checks > 300, "only {} answers were checked", walked.checks);
    assert_eq!(
        live.count().await,
        2,
        "one write was right, and sent twice under one key; nothing else that the walker sent was"
    );
}

#[tokio::test]
async fn the_walker_finds_what_a_service_without_the_layers_does_wrong() {
    // The same document, served by handlers that accept everything.
    let live = Live::start().await;
    let lax = axum::Router::new()
        .route("/v1/notes", get(|| async { "[]" }).post(|| async { "{}" }))
        .route(
            "/v1/notes/{id}",
            get(|| async { "{}" }).put(|_: Json<serde_json::Value>| async { "{}" }),
        )
        .route("/v1/panic", post(|| async {}));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(api_kit::serve(listener, lax, live.shutdown.clone()));

    let walked = Walk::new(&url, live.minter.clone(), live.organization)
        .run(&live.api.openapi)
        .await;

    for expected in [
        "POST /v1/notes without a token: expected 401, got 200",
        "POST /v1/notes without an Idempotency-Key: expected 400, got 200",
        "PUT /v1/notes/{id} with two unknown fields: expected 422, got 200",
        "GET /v1/notes/{id} by another organization: expected 404, got 200",
        "GET /v1/notes with limit=0: expected 422, got 200",
        "GET /v1/notes page by page: the page has no items",
        "PUT /v1/notes/{id}: the walker was given no object, so it shows nothing of it",
        "PUT /v1/notes/{id} with too large a body: expected 413",
        "the answer is \"text/plain; charset=utf-8\", not a problem",
    ] {
        let is_found = walked.faults.iter().any(|fault| fault.contains(expected));
        assert!(is_found, "{expected} is not among {:#?}", walked.faults);
    }
}

#[tokio::test]
async fn the_document_says_of_every_operation_what_its_layers_ask() {
    let live = Live::start().await;
    let served: serde_json::Value = reqwest::get(format!("{}/openapi.json", live.url))
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(
        served,
        serde_json::to_value(&live.api.openapi).unwrap(),
        "what is served is what is committed"
    );
    assert!(served["openapi"].as_str().unwrap().starts_with("3.1"));
    let create = &served["paths"]["/v1/notes"]["post"];
    assert_eq!(create["security"], serde_json::json!([{"bearer": []}]));
    let statuses = |operation: &serde_json::Value| -> Vec<String> {
        operation["responses"].as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(
        statuses(create),
        ["201", "400", "401", "403", "413", "415", "422", "500", "503"]
    );
    assert_eq!(create["responses"]["422"]["$ref"], "#/components/responses/Problem");
    assert_eq!(statuses(&served["paths"]["/healthz"]["get"]), ["200", "500", "503"]);
    assert_eq!(create["x-roles"], serde_json::json!(["operator"]));
    assert_eq!(create["parameters"][0]["name"], "Idempotency-Key");
    assert_eq!(served["paths"]["/v1/notes/{id}"]["put"]["x-body-limit"], 65536);
    assert_eq!(served["paths"]["/healthz"]["get"]["security"], serde_json::json!([]));
    assert!(served["components"]["schemas"]["FieldError"].is_object());
}

#[test]
fn the_document_needs_neither_keys_nor_a_database() {
    let table = AccessTable::new([Rule::new("GET", "/v1/nothing", notebook::READERS)]);
    #[utoipa::path(get, path = "/v1/nothing", responses((status = 200)))]
    async fn nothing() {}
    let routes = api_kit::OpenApiRouter::new().routes(api_kit::routes!(nothing));
    let document: OpenApi = api_kit::ApiBuilder::new("nothing", "1", routes, table)
        .openapi()
        .unwrap();
    assert!(document.paths.paths.contains_key("/readyz"));
}
