//! A server that answers by script, connection by connection, and tells what it was asked.

use std::sync::Arc;

use client_kit::{Client, Retries};
use identity::{BearerToken, RotatingToken};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

pub const TOKEN: &str = "canary-token";
pub const OK: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 4\r\nconnection: close\r\n\r\ntrue";

/// Gives each connection the next answer; an empty one closes it. After the last nobody listens.
pub async fn scripted(answers: Vec<String>) -> (Client, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (heads, seen) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = heads.send(read_head(&mut stream).await);
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let tokens = Arc::new(RotatingToken::new(BearerToken::new(TOKEN)));
    let client = Client::new(&url, Some(tokens)).unwrap().with_retries(Retries::NONE);
    (client, seen)
}

async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut chunk = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut chunk).await {
            Ok(count) if count > 0 => head.extend_from_slice(&chunk[..count]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&head).to_ascii_lowercase()
}
