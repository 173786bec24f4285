//! The feed as a source, against a catalog that says what a test wants it to say.

mod conformance;

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use client_kit::Client;
use control_plane_ports::{EventSource, EventSourceError, SourceEvent};
use events_feed::FeedSource;
use futures::TryStreamExt as _;
use kernel::id::OrganizationId;

async fn source(feed: &'static str, snapshot: &'static str) -> FeedSource {
    let answer = |body: &'static str| move || async move { with_kind(body) };
    let router = Router::new()
        .route("/v1/feed", get(answer(feed)))
        .route("/v1/snapshot", get(answer(snapshot)));
    let listener = tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
        .await
        .unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    FeedSource::new(Client::new(&base, None).unwrap())
}

fn with_kind(body: &'static str) -> Response {
    if body.contains("\"status\":410") {
        return (
            axum::http::StatusCode::GONE,
            [("content-type", "application/problem+json")],
            body,
        )
            .into_response();
    }
    ([("content-type", "application/json")], body).into_response()
}

fn organization() -> OrganizationId {
    OrganizationId(uuid::Uuid::nil())
}

async fn read(feed: &'static str, after: i64) -> Result<control_plane_ports::EventBatch, EventSourceError> {
    source(feed, "")
        .await
        .read(organization(), after, 10, Duration::ZERO)
        .await
}

async fn snapshot(text: &'static str) -> Result<(i64, usize), EventSourceError> {
    let snapshot = source("", text).await.snapshot(organization()).await?;
    let resources: Vec<_> = snapshot.resources.try_collect().await?;
    Ok((snapshot.revision, resources.len()))
}

#[tokio::test]
async fn one_fact_that_cannot_be_read_hides_no_other() {
    let feed = r#"{"events":[
        {"event_id":"01890a5d-ac96-774b-bcce-b302099a8057","event_type":"resource.updated","resource_id":"node/a",
         "resource_type":"compute.node","organization_id":"01890a5d-ac96-774b-bcce-b302099a8057","version":1,
         "payload":{},"occurred_at":"2026-01-01T00:00:00Z","revision":1,"later_field":true},
        {"resource_id":"node/b","revision":2,"version":"three"}
    ],"next_after":2,"head":5}"#;
    let batch = read(feed, 0).await.unwrap();
    assert_eq!((batch.next_after, batch.head), (2, 5));
    assert!(matches!(&batch.events[0], SourceEvent::Fact(fact) if fact.version == 1));
    let SourceEvent::Unreadable {
        revision, resource_id, ..
    } = &batch.events[1]
    else {
        panic!("{:?}", batch.events[1])
    };
    assert_eq!((*revision, resource_id.as_deref()), (Some(2), Some("node/b")));
}

#[tokio::test]
async fn a_position_that_is_gone_is_told_apart_from_silence() {
    let gone = r#"{"title":"Gone","status":410,"code":"revision_gone"}"#;
    assert!(matches!(read(gone, 7).await, Err(EventSourceError::PositionGone)));
    let behind = r#"{"events":[],"next_after":7,"head":3}"#;
    assert!(matches!(read(behind, 7).await, Err(EventSourceError::PositionGone)));
    let nobody = FeedSource::new(Client::new("http://127.0.0.1:1", None).unwrap());
    let silence = nobody.read(organization(), 0, 1, Duration::ZERO).await;
    assert!(matches!(silence, Err(EventSourceError::Unreachable(_))));
    assert!(matches!(read("[]", 0).await, Err(EventSourceError::Refused(_))));
}

#[tokio::test]
async fn a_snapshot_is_whole_or_an_error() {
    let whole = "{\"kind\":\"head\",\"revision\":9}\n{\"kind\":\"resource\",\"resource\":{}}\n{\"kind\":\"note\"}\n{\"kind\":\"end\",\"resources\":1}\n";
    assert_eq!(snapshot(whole).await.unwrap(), (9, 1));
    for cut in [
        "",
        "{\"kind\":\"head\",\"revision\":9}\n{\"kind\":\"resource\",\"resource\":{}}\n",
        "{\"kind\":\"head\",\"revision\":9}\n{\"kind\":\"end\",\"resources\":1}\n",
        "{\"kind\":\"head\",\"revision\":9}\n{\"kind\":\"resou",
        "{\"kind\":\"resource\",\"resource\":{}}\n",
    ] {
        assert!(snapshot(cut).await.is_err(), "{cut:?}");
    }
}
