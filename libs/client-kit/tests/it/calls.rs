use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::extract::Path;
use axum::http::Uri;
use axum::routing::{get, post};
use bytes::Bytes;
use client_kit::{Client, ClientError, segment};
use futures::TryStreamExt as _;
use identity::{Minter, PrivateKey, ServiceTokens};
use kernel::id::OrganizationId;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::scripted::{OK, TOKEN, scripted};
use crate::serve;

#[tokio::test]
async fn nobody_listening_is_told_with_the_address_and_without_the_token() {
    let (client, _) = scripted(Vec::new()).await;
    let error = client.get("/v1/x").done().await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }));
    let text = format!("{error} {error:?} {client:?}");
    assert!(text.contains(client.base()));
    assert!(!text.contains(TOKEN), "{text}");
}

#[tokio::test]
async fn a_service_acts_for_the_organization_it_says() {
    let (plain, mut heads) = scripted(vec![OK.to_owned(); 2]).await;
    let tokens = ServiceTokens::new(Minter::new(PrivateKey::generate(), "x"), "x");
    let client = Client::new(plain.base(), Some(Arc::new(tokens))).unwrap();
    let mut sent = Vec::new();
    for _ in 0..2 {
        let acting = client.acting_for(OrganizationId::new_v7());
        assert!(acting.get("/").json::<bool>().await.unwrap());
        let head = heads.recv().await.unwrap();
        let token = head.lines().find(|line| line.starts_with("authorization: bearer "));
        sent.push(token.unwrap().to_owned());
    }
    assert_ne!(sent[0], sent[1]);
}

#[tokio::test]
async fn a_segment_and_a_query_reach_the_service_byte_for_byte() {
    let echo = |Path(name): Path<String>, uri: Uri| async move { Json(json!([name, uri.query()])) };
    let base = serve(Router::new().route("/v1/{name}", get(echo))).await;
    let client = Client::new(&base, None).unwrap();
    let name = "a/b?c d%é~.-_";
    let call = client.get(&format!("/v1/{}", segment(name)));
    let answer: Value = call.query(&[("q", "x=1&y"), ("n", "7")]).json().await.unwrap();
    assert_eq!(answer, json!([name, "q=x%3D1%26y&n=7"]));
}

#[tokio::test]
async fn a_body_is_streamed_both_ways() {
    let router = Router::new().route("/", post(|body: axum::body::Body| async { body }));
    let client = Client::new(&serve(router).await, None).unwrap();
    let chunks = (0..100).map(|number: u32| Ok::<_, std::io::Error>(Bytes::from(number.to_string())));
    let body = reqwest::Body::wrap_stream(futures::stream::iter(chunks));
    let response = client
        .post("/")
        .stream("application/octet-stream", body)
        .send()
        .await
        .unwrap();
    let back: Vec<Bytes> = response.bytes_stream().try_collect().await.unwrap();
    let expected: String = (0..100).map(|number: u32| number.to_string()).collect();
    assert_eq!(back.concat(), expected.as_bytes());
}

proptest! {
    #[test]
    fn no_text_leaves_its_segment(text in "\\PC{0,30}") {
        let escaped = segment(&text);
        prop_assert!(escaped.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.~%".contains(&b)));
    }
}
