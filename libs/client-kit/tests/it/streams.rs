use client_kit::{ClientError, ServerEvent};
use futures::{StreamExt as _, TryStreamExt as _};

use crate::scripted::scripted;

/// An event stream that is cut after `events`.
fn cut(events: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{events}")
}

fn refused(status: u16, problem: &str) -> String {
    let length = problem.len();
    format!(
        "HTTP/1.1 {status} No\r\ncontent-type: application/problem+json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{problem}"
    )
}

const GONE: &str = "{\"status\":410,\"code\":\"too_far_behind\",\"title\":\"Gone\"}";
const AWAY: &str = "{\"status\":503,\"code\":\"unavailable\",\"title\":\"Away\"}";

#[tokio::test]
async fn half_an_event_is_not_an_event_and_every_break_is_resumed_after_the_last_whole_one() {
    let (client, mut heads) = scripted(vec![
        cut("id: 1\ndata: a\n\n: heartbeat\n\nid: 2\ndata: half of"),
        String::new(),
        refused(503, AWAY),
        cut(&format!("id: 2\ndata: b\n\nevent: problem\ndata: {AWAY}\n\n")),
        cut("id: 3\ndata: c\n\nevent: end\ndata: {}\n\n"),
    ])
    .await;
    let events: Vec<ServerEvent> = client.events("/watch", None, "end").try_collect().await.unwrap();
    let seen: Vec<&str> = events.iter().map(|event| event.data.as_str()).collect();
    assert_eq!(seen, ["a", "b", "c", "{}"]);
    let mut asked = Vec::new();
    while let Ok(head) = heads.try_recv() {
        asked.push(
            head.lines()
                .find_map(|line| line.strip_prefix("last-event-id: ").map(str::to_owned)),
        );
    }
    let id = |id: &str| Some(id.to_owned());
    assert_eq!(asked, [None, id("1"), id("1"), id("1"), id("2")]);
}

#[tokio::test]
async fn a_problem_told_in_the_stream_or_at_the_door_ends_it() {
    for second in [cut(&format!("event: problem\ndata: {GONE}\n\n")), refused(410, GONE)] {
        let (client, _heads) = scripted(vec![cut("id: 1\ndata: a\n\n"), second]).await;
        let events: Vec<_> = client.events("/watch", None, "end").collect().await;
        assert_eq!(events.len(), 2);
        let Err(ClientError::Problem(problem)) = &events[1] else {
            panic!("{events:?}")
        };
        assert_eq!(problem.code, "too_far_behind");
    }
}
