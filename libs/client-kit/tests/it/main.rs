//! The client against small real servers that misbehave on purpose.

mod calls;
mod scripted;
mod streams;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event, Sse};
use axum::routing::{get, post};
use client_kit::{Client, ClientError, Problem, Retries};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

/// Cuts the first `cut` connections after the request was read, answers the others with `{}`.
async fn cutting(cut: u32) -> (String, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(AtomicU32::new(0));
    let count = seen.clone();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let _ = socket.read(&mut [0; 4096]).await;
            if count.fetch_add(1, Ordering::SeqCst) >= cut {
                let _ = socket
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
                    .await;
            }
        }
    });
    (base, seen)
}

fn quick(base: &str, tries: u32) -> Client {
    let pause = Duration::from_millis(1);
    Client::new(base, None).unwrap().with_retries(Retries {
        tries,
        first_pause: pause,
        longest_pause: pause,
    })
}

#[tokio::test]
async fn what_got_no_answer_is_repeated_only_where_that_is_harmless() {
    let (base, seen) = cutting(2).await;
    quick(&base, 3).get("/x").json::<Value>().await.unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 3);

    let (base, seen) = cutting(1).await;
    let error = quick(&base, 3)
        .post("/x")
        .body(&json!({}))
        .json::<Value>()
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }) && error.is_transient());
    assert_eq!(seen.load(Ordering::SeqCst), 1, "a POST may have been done");

    let (base, seen) = cutting(1).await;
    quick(&base, 3)
        .post("/x")
        .body(&json!({}))
        .idempotency_key("k")
        .json::<Value>()
        .await
        .unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 2);

    let (base, seen) = cutting(9).await;
    assert!(quick(&base, 3).get("/x").json::<Value>().await.is_err());
    assert_eq!(seen.load(Ordering::SeqCst), 3, "tries are bounded");
}

#[tokio::test]
async fn a_problem_is_the_services_word_and_anything_else_is_not() {
    let router = Router::new()
        .route(
            "/problem",
            get(|| async {
                let problem = Problem::version_mismatch("node/a", 7);
                (
                    axum::http::StatusCode::PRECONDITION_FAILED,
                    [("content-type", problem::MEDIA_TYPE)],
                    serde_json::to_string(&problem).unwrap(),
                )
            }),
        )
        .route(
            "/html",
            get(|| async { (axum::http::StatusCode::BAD_GATEWAY, "<html>no</html>") }),
        )
        .route("/text", get(|| async { "not json" }));
    let client = quick(&serve(router).await, 3);
    let error = client.get("/problem").json::<Value>().await.unwrap_err();
    assert_eq!(
        (error.code(), error.status(), error.is_transient()),
        (Some("version_mismatch"), Some(412), false)
    );
    assert_eq!(error.problem().unwrap().extensions["current_version"], json!(7));
    let error = client.get("/html").json::<Value>().await.unwrap_err();
    assert!(matches!(error, ClientError::NotAPlatform { status: 502, .. }) && error.is_transient());
    assert!(matches!(
        client.get("/text").json::<Value>().await.unwrap_err(),
        ClientError::Answer { .. }
    ));
}

#[tokio::test]
async fn the_version_comes_from_the_entity_tag_and_goes_into_if_match() {
    let router = Router::new().route(
        "/o",
        post(|headers: HeaderMap| async move {
            let seen = headers["if-match"].to_str().unwrap().to_owned();
            ([("etag", "\"8\"")], axum::Json(json!({"seen": seen})))
        }),
    );
    let client = quick(&serve(router).await, 1);
    let answer = client.post("/o").if_version(7).answer::<Value>().await.unwrap();
    assert_eq!((answer.version, answer.status), (Some(8), 200));
    assert_eq!(answer.body, json!({"seen": "\"7\""}));
}

/// Sends two events a connection, then ends it; the event numbered 5 is the last.
async fn numbers(State(connections): State<Arc<AtomicU32>>, headers: HeaderMap) -> impl IntoResponse {
    connections.fetch_add(1, Ordering::SeqCst);
    let after: u32 = headers
        .get("last-event-id")
        .map_or(0, |id| id.to_str().unwrap().parse().unwrap());
    let events = (after + 1..=after + 2).map(|number| {
        let event = Event::default().id(number.to_string()).data(number.to_string());
        Ok::<_, Infallible>(if number == 5 { event.event("end") } else { event })
    });
    Sse::new(tokio_stream::iter(events))
}

#[tokio::test]
async fn an_event_stream_resumes_after_the_last_event_seen_and_ends_with_the_final_one() {
    let connections = Arc::new(AtomicU32::new(0));
    let base = serve(
        Router::new()
            .route("/events", get(numbers))
            .with_state(connections.clone()),
    )
    .await;
    let client = quick(&base, 1);
    let events: Vec<_> = client
        .events("/events", None, "end")
        .map(|event| event.unwrap().data)
        .collect()
        .await;
    assert_eq!(events, ["1", "2", "3", "4", "5"]);
    assert_eq!(connections.load(Ordering::SeqCst), 3);
    let resumed: Vec<_> = client
        .events("/events", Some("3".into()), "end")
        .map(|event| event.unwrap().data)
        .collect()
        .await;
    assert_eq!(resumed, ["4", "5"]);
    let refused: Vec<_> = client.events("/nowhere", None, "end").collect().await;
    assert!(matches!(
        refused.as_slice(),
        [Err(ClientError::NotAPlatform { status: 404, .. })]
    ));
}
