use api_kit::{Health, Problem};

use crate::live::Live;

#[tokio::test]
async fn a_panic_is_a_problem_that_tells_nothing_and_the_service_lives_on() {
    let live = Live::start().await;
    let response = live.request("POST", "/v1/panic").send().await.unwrap();
    assert_eq!(response.status(), 500);
    let text = response.text().await.unwrap();
    assert!(!text.contains("canary"), "{text}");
    assert_eq!(serde_json::from_str::<Problem>(&text).unwrap().code, "internal");
    assert_eq!(live.request("GET", "/v1/notes").send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn health_is_told_without_a_token_and_readiness_names_what_ails() {
    let live = Live::start().await;
    let get = |path: &str| reqwest::get(format!("{}{path}", live.url));
    assert_eq!(get("/healthz").await.unwrap().status(), 200);
    let ready: serde_json::Value = get("/readyz").await.unwrap().json().await.unwrap();
    assert_eq!(ready["checks"][0], serde_json::json!({"name": "database", "ok": true}));

    live.database.close().await;
    let response = get("/readyz").await.unwrap();
    assert_eq!(response.status(), 503);
    let problem: Problem = response.json().await.unwrap();
    assert_eq!(problem.code, "not_ready");
    assert_eq!(problem.extensions["checks"][0]["name"], "database");
    assert_eq!(get("/healthz").await.unwrap().status(), 200, "the process itself lives");
}

#[tokio::test]
async fn a_database_that_is_away_is_503_with_when_to_come_back() {
    let live = Live::start().await;
    live.database.close().await;
    let response = live.request("GET", "/v1/notes").send().await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(response.json::<Problem>().await.unwrap().code, "unavailable");
}

#[tokio::test(start_paused = true)]
async fn a_dependency_that_hangs_is_told_and_does_not_hang_the_answer() {
    use tower::ServiceExt as _;
    let health = Health::default().dependency("slow", std::future::pending);
    let routes = api_kit::OpenApiRouter::new();
    let api = api_kit::ApiBuilder::new("x", "1", routes, api_kit::AccessTable::default())
        .health(health)
        .build(identity::TrustStore::new([]))
        .unwrap();
    let request = http::Request::get("/readyz").body(axum::body::Body::empty()).unwrap();
    assert_eq!(api.router.oneshot(request).await.unwrap().status(), 503);
}
