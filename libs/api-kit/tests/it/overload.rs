use std::sync::Arc;

use api_kit::{AccessTable, ApiBuilder, OpenApiRouter, Problem, Rule};
use axum::Extension;
use axum::body::Body;
use chrono::{TimeDelta, Utc};
use http::Request;
use http_body_util::BodyExt as _;
use identity::{Minter, PrivateKey, Role, TrustStore, TrustedKey, Vouch};
use kernel::id::OrganizationId;
use tokio::sync::Notify;
use tower::ServiceExt as _;
use utoipa_axum::routes;

/// Answers when it is told.
#[utoipa::path(get, path = "/v1/slow", responses((status = 200)))]
async fn slow(Extension(told): Extension<Arc<Notify>>) {
    told.notified().await;
}

#[tokio::test]
async fn more_requests_than_there_are_places_are_refused_at_once_and_those_of_the_platform_itself_are_not() {
    let (key, told) = (PrivateKey::generate(), Arc::new(Notify::new()));
    let trust = TrustStore::new([TrustedKey::new(key.public_key(), [Vouch::Issuer])]);
    let table = AccessTable::new([Rule::new("GET", "/v1/slow", &[Role::Viewer, Role::Service])]);
    let api = ApiBuilder::new("x", "1", OpenApiRouter::new().routes(routes!(slow)), table)
        .places(2)
        .build(trust)
        .unwrap();
    let router = api.router.layer(Extension(told.clone()));
    let minter = Minter::new(key, "test");
    let ask = |role| {
        let organization = OrganizationId::new_v7();
        let token = minter.mint("person:ada", organization, [role], TimeDelta::minutes(5), Utc::now());
        let request = Request::get("/v1/slow").header("authorization", format!("Bearer {}", token.unwrap().expose()));
        router.clone().oneshot(request.body(Body::empty()).unwrap())
    };
    let mut under_way: Vec<_> = [Role::Viewer, Role::Viewer, Role::Service]
        .map(|role| Box::pin(ask(role)))
        .into();
    for request in &mut under_way {
        assert!(futures::poll!(request).is_pending());
    }
    let refused = ask(Role::Viewer).await.unwrap();
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["retry-after"], "1");
    let body = refused.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(serde_json::from_slice::<Problem>(&body).unwrap().code, "overloaded");
    told.notify_waiters();
    for request in under_way {
        assert_eq!(request.await.unwrap().status(), 200);
    }
    told.notify_one();
    assert_eq!(
        ask(Role::Viewer).await.unwrap().status(),
        200,
        "the places are free again"
    );
}
