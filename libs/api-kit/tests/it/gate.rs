use api_kit::Problem;
use chrono::{TimeDelta, Utc};
use identity::{Minter, PrivateKey, Role};
use serde_json::json;

use crate::live::Live;

async fn problem(request: reqwest::RequestBuilder) -> Problem {
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    response.json().await.unwrap()
}

#[tokio::test]
async fn an_expired_token_and_one_of_a_strange_key_are_told_apart() {
    let live = Live::start().await;
    let bare = || live.client.get(format!("{}/v1/notes", live.url));
    let past = Utc::now() - TimeDelta::hours(1);
    let old = live
        .minter
        .mint(
            "person:ada",
            live.organization,
            [Role::Operator],
            TimeDelta::minutes(1),
            past,
        )
        .unwrap();
    let expired = problem(bare().bearer_auth(old.expose())).await;
    assert_eq!((expired.status, expired.code.as_str()), (401, "token_expired"));
    let stranger = Minter::new(PrivateKey::generate(), "stranger");
    let strange = stranger
        .mint(
            "person:ada",
            live.organization,
            [Role::Operator],
            TimeDelta::minutes(1),
            Utc::now(),
        )
        .unwrap();
    let unknown = problem(bare().bearer_auth(strange.expose())).await;
    assert_eq!((unknown.status, unknown.code.as_str()), (401, "token_invalid"));
    assert!(!unknown.to_string().contains(strange.expose()));
}

#[tokio::test]
async fn a_role_that_does_not_suffice_is_told_which_would() {
    let live = Live::start().await;
    let request = live
        .client
        .post(format!("{}/v1/notes", live.url))
        .bearer_auth(live.token(&[Role::Viewer, Role::Admin]));
    let refused = problem(request).await;
    assert_eq!(refused.code, "forbidden");
    assert!(refused.detail.contains("operator"));
}

#[tokio::test]
async fn a_head_request_is_held_to_the_rule_of_get() {
    let live = Live::start().await;
    let url = format!("{}/v1/notes", live.url);
    assert_eq!(live.client.head(&url).send().await.unwrap().status(), 401);
    let allowed = live
        .client
        .head(&url)
        .bearer_auth(live.token(&[Role::Viewer]))
        .send()
        .await
        .unwrap();
    assert_eq!(allowed.status(), 200);
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let live = Live::start().await;
    let response = live.request("PATCH", "/v1/notes").send().await.unwrap();
    assert_eq!(response.status(), 405);
    assert_eq!(response.headers()["allow"], "GET, POST, HEAD");
}

#[tokio::test]
async fn a_body_without_a_declared_length_is_held_to_the_limit_too() {
    let live = Live::start().await;
    let note = live.note("x").await;
    let chunks = (0..80).map(|_| Ok::<_, std::io::Error>(vec![b' '; 1024]));
    let request = live
        .request("PUT", &note)
        .header("content-type", "application/json")
        .header("if-match", "*")
        .body(reqwest::Body::wrap_stream(futures::stream::iter(chunks)));
    let refused = problem(request).await;
    assert_eq!((refused.status, refused.code.as_str()), (413, "body_too_large"));
}

#[tokio::test]
async fn a_route_may_take_more_than_the_rest() {
    let live = Live::start().await;
    let size = 5 * 1024 * 1024;
    let response = live
        .request("PUT", "/v1/blobs/a")
        .header("content-type", "application/octet-stream")
        .body(vec![7; size])
        .send()
        .await
        .unwrap();
    assert_eq!(response.json::<usize>().await.unwrap(), size);
}

#[tokio::test]
async fn a_request_id_is_kept_when_sane_and_made_when_not() {
    let live = Live::start().await;
    let given = live.request("GET", "/v1/notes").header("x-request-id", "trace-7");
    assert_eq!(given.send().await.unwrap().headers()["x-request-id"], "trace-7");
    for bad in ["with space", "", &"x".repeat(65)] {
        let response = live
            .request("GET", "/v1/notes")
            .header("x-request-id", bad)
            .send()
            .await
            .unwrap();
        let made = response.headers()["x-request-id"].to_str().unwrap();
        assert!(uuid::Uuid::parse_str(made).is_ok(), "{made}");
    }
}

#[tokio::test]
async fn a_write_holds_the_version_it_was_meant_for() {
    let live = Live::start().await;
    let note = live.note("one").await;
    let read = live.request("GET", &note).send().await.unwrap();
    assert_eq!(read.headers()["etag"], "\"1\"");
    let put = |if_match: Option<&str>| {
        let request = live.request("PUT", &note).json(&json!({"body": "two"}));
        match if_match {
            Some(version) => request.header("if-match", version),
            None => request,
        }
    };
    assert_eq!(problem(put(None)).await.code, "precondition_required");
    let written = put(Some("\"1\"")).send().await.unwrap();
    assert_eq!(written.headers()["etag"], "\"2\"");
    let stale = problem(put(Some("\"1\""))).await;
    assert_eq!((stale.status, stale.code.as_str()), (412, "version_mismatch"));
    assert_eq!(stale.extensions["current_version"], 2);
    assert_eq!(put(Some("*")).send().await.unwrap().status(), 200);
    for bad in ["1", "\"x\"", "W/\"2\"", "\"2\", \"3\""] {
        assert_eq!(problem(put(Some(bad))).await.code, "invalid_if_match", "{bad}");
    }
}

#[tokio::test]
async fn what_cannot_be_an_id_names_nothing() {
    let live = Live::start().await;
    assert_eq!(problem(live.request("GET", "/v1/notes/not-a-uuid")).await.status, 404);
}
