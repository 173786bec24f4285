use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::live::Live;
use crate::notebook;

#[tokio::test]
async fn a_request_that_waits_is_told_and_answered_when_the_service_ends() {
    let live = Live::start().await;
    let address = live.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "GET /v1/wait HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\nGET /healthz HTTP/1.1\r\nhost: x\r\n\r\n",
        live.token(&[identity::Role::Viewer])
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    notebook::WAITS.notified().await;

    live.shutdown.cancel();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        answer.ends_with("closing"),
        "nothing after it is served on the connection: {answer}"
    );
    live.served.await.unwrap().unwrap();
}

#[tokio::test]
async fn after_the_end_nobody_is_accepted_and_idle_connections_do_not_hold_it_up() {
    let live = Live::start().await;
    let address = live.url.strip_prefix("http://").unwrap().to_owned();
    let _idle = TcpStream::connect(&address).await.unwrap();
    // Keeps its connection alive.
    live.request("GET", "/v1/notes").send().await.unwrap();
    live.shutdown.cancel();
    live.served.await.unwrap().unwrap();
    assert!(TcpStream::connect(&address).await.is_err());
}
