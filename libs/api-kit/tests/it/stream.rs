use crate::live::Live;

async fn lines(live: &Live, note: &str, last: Option<&str>) -> String {
    let request = live.request("GET", &format!("{note}/lines"));
    let request = match last {
        Some(last) => request.header("last-event-id", last),
        None => request,
    };
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["cache-control"], "no-store");
    response.text().await.unwrap()
}

#[tokio::test]
async fn a_stream_gives_each_event_with_its_id_and_ends_with_the_final_marker() {
    let live = Live::start().await;
    let note = live.note("one\ntwo").await;
    assert_eq!(
        lines(&live, &note, None).await,
        "event: line\nid: 0\ndata: \"one\"\n\nevent: line\nid: 1\ndata: \"two\"\n\nevent: end\ndata: {}\n\n"
    );
}

#[tokio::test]
async fn a_stream_is_resumed_after_the_last_event() {
    let live = Live::start().await;
    let note = live.note("one\ntwo").await;
    let rest = lines(&live, &note, Some("0")).await;
    assert!(rest.starts_with("event: line\nid: 1\n"), "{rest}");
    assert_eq!(lines(&live, &note, Some("1")).await, "event: end\ndata: {}\n\n");
}

#[tokio::test]
async fn a_fault_in_a_stream_is_told_in_it_and_there_is_no_final_marker() {
    let live = Live::start().await;
    let note = live.note("one\ntorn\ntwo").await;
    let text = lines(&live, &note, None).await;
    assert!(text.contains("event: problem\ndata: {\"type\":"), "{text}");
    assert!(!text.contains("two") && !text.contains("event: end"), "{text}");
}
