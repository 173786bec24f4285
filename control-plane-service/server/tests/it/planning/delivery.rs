use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::put;
use control_plane_api::PageQuery;
use kernel::Sha256Digest;
use serde_json::json;

use super::harness::{Harness, TEMPLATE, archive};

/// A content as it was sent: the digest in the path, the bytes.
type Kept = (String, Vec<u8>);

/// An execution-plane that keeps contents, and can be made to refuse.
#[derive(Clone, Default)]
struct Contents {
    kept: Arc<Mutex<Vec<Kept>>>,
    broken: Arc<Mutex<bool>>,
}

async fn store(State(contents): State<Contents>, Path(sha256): Path<String>, body: Bytes) -> Response {
    if *contents.broken.lock().unwrap() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let size_bytes = body.len();
    contents.kept.lock().unwrap().push((sha256.clone(), body.to_vec()));
    axum::Json(json!({"sha256": sha256, "size_bytes": size_bytes})).into_response()
}

async fn with_execution_plane() -> (Harness, Contents) {
    let contents = Contents::default();
    let router = Router::new()
        .route("/v1/contents/{sha256}", put(store))
        .with_state(contents.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (Harness::at(&base).await, contents)
}

#[tokio::test]
async fn content_is_owed_from_publishing_on_and_delivered_once_it_can_be() {
    let (harness, contents) = with_execution_plane().await;
    *contents.broken.lock().unwrap() = true;
    let pack = harness
        .client()
        .push_pack(archive("1.0.0", TEMPLATE), "a")
        .await
        .unwrap()
        .body;
    assert_eq!(harness.app.delivery.deliver_due().await.unwrap(), 1);
    let waiting = harness
        .client()
        .packs(&PageQuery::default())
        .await
        .unwrap()
        .items
        .remove(0);
    assert_eq!(waiting.content_delivered_at, None);
    *contents.broken.lock().unwrap() = false;
    // The pause after a failure is over.
    let superuser = harness.database.open_superuser();
    let due = "UPDATE content_deliveries SET due_at = now()";
    superuser.hot().get().await.unwrap().batch_execute(due).await.unwrap();
    assert_eq!(harness.app.delivery.deliver_due().await.unwrap(), 1);
    assert_eq!(
        harness.app.delivery.deliver_due().await.unwrap(),
        0,
        "a debt is paid once"
    );
    let kept = contents.kept.lock().unwrap().clone();
    let (sha256, bytes) = &kept[0];
    assert_eq!((kept.len(), sha256), (1, &pack.content_digest.unwrap().to_hex()));
    assert_eq!(Sha256Digest::of(bytes), pack.content_digest.unwrap());
    let delivered = harness
        .client()
        .packs(&PageQuery::default())
        .await
        .unwrap()
        .items
        .remove(0);
    assert!(delivered.content_delivered_at.is_some());
}
