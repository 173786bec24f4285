//! The faults, each as a caller and a server see it.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use fault_proxy::{Fault, FaultProxy, Way};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

struct Pair {
    proxy: FaultProxy,
    listener: TcpListener,
}

impl Pair {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = FaultProxy::before(listener.local_addr().unwrap()).await.unwrap();
        Self { proxy, listener }
    }

    /// A caller's end and a server's end of one connection.
    async fn connect(&self) -> (TcpStream, TcpStream) {
        let caller = TcpStream::connect(self.proxy.address()).await.unwrap();
        let (server, _) = self.listener.accept().await.unwrap();
        (caller, server)
    }
}

async fn arrives(from: &mut TcpStream, to: &mut TcpStream, text: &str) {
    from.write_all(text.as_bytes()).await.unwrap();
    got(to, text).await;
}

async fn got(to: &mut TcpStream, text: &str) {
    let mut read = vec![0; text.len()];
    to.read_exact(&mut read).await.unwrap();
    assert_eq!(read, text.as_bytes());
}

#[tokio::test]
async fn without_a_fault_bytes_and_ends_go_both_ways() {
    let pair = Pair::new().await;
    let (mut caller, mut server) = pair.connect().await;
    arrives(&mut caller, &mut server, "question").await;
    arrives(&mut server, &mut caller, "answer").await;
    caller.shutdown().await.unwrap();
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0, "the end arrives");
    arrives(&mut server, &mut caller, "a last word").await;
    drop(server);
    assert_eq!(caller.read(&mut [0; 8]).await.unwrap(), 0);
}

#[tokio::test]
async fn refused_connections_are_refused_and_open_ones_reset_until_it_is_healed() {
    let pair = Pair::new().await;
    let (mut caller, mut server) = pair.connect().await;
    arrives(&mut caller, &mut server, "before").await;
    pair.proxy.set(Fault::Refuse);
    assert_eq!(
        caller.read(&mut [0; 8]).await.unwrap_err().kind(),
        ErrorKind::ConnectionReset
    );
    assert_eq!(
        server.read(&mut [0; 8]).await.unwrap_err().kind(),
        ErrorKind::ConnectionReset
    );
    // The open connection may be reset a moment before the listener is gone.
    while TcpStream::connect(pair.proxy.address()).await.is_ok() {
        tokio::task::yield_now().await;
    }
    pair.proxy.heal();
    let mut caller = loop {
        match TcpStream::connect(pair.proxy.address()).await {
            Ok(caller) => break caller,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let (mut server, _) = pair.listener.accept().await.unwrap();
    arrives(&mut caller, &mut server, "after").await;
}

#[tokio::test]
async fn a_reset_is_seen_by_open_and_by_new_connections() {
    let pair = Pair::new().await;
    let (mut caller, mut server) = pair.connect().await;
    arrives(&mut caller, &mut server, "before").await;
    pair.proxy.set(Fault::Reset);
    for end in [&mut caller, &mut server] {
        assert_eq!(
            end.read(&mut [0; 8]).await.unwrap_err().kind(),
            ErrorKind::ConnectionReset
        );
    }
    let mut next = TcpStream::connect(pair.proxy.address()).await.unwrap();
    assert_eq!(
        next.read(&mut [0; 8]).await.unwrap_err().kind(),
        ErrorKind::ConnectionReset
    );
}

#[tokio::test]
async fn what_is_held_in_one_direction_arrives_when_the_fault_ends_and_the_other_direction_goes_on() {
    for (fault, held, free) in [
        (Fault::Hold(Way::ToServer), Way::ToServer, Some(Way::ToCaller)),
        (Fault::Hold(Way::ToCaller), Way::ToCaller, Some(Way::ToServer)),
        (Fault::HoldAll, Way::ToServer, None),
    ] {
        let pair = Pair::new().await;
        let (mut caller, mut server) = pair.connect().await;
        arrives(&mut caller, &mut server, "before").await;
        pair.proxy.set(fault);
        let (from, to) = match held {
            Way::ToServer => (&mut caller, &mut server),
            Way::ToCaller => (&mut server, &mut caller),
        };
        from.write_all(b"held").await.unwrap();
        if free.is_some() {
            arrives(to, from, "the other way").await;
        }
        assert_eq!(
            to.try_read(&mut [0; 8]).unwrap_err().kind(),
            ErrorKind::WouldBlock,
            "{fault:?}"
        );
        from.write_all(b" and more").await.unwrap();
        pair.proxy.heal();
        got(to, "held and more").await;
    }
}

#[tokio::test]
async fn a_delayed_piece_takes_at_least_so_long() {
    let pair = Pair::new().await;
    let (mut caller, mut server) = pair.connect().await;
    let pause = Duration::from_millis(50);
    pair.proxy.set(Fault::Delay(pause));
    let sent = Instant::now();
    arrives(&mut caller, &mut server, "late").await;
    arrives(&mut server, &mut caller, "later").await;
    assert!(sent.elapsed() >= pause * 2, "both ways are slow");
}

#[tokio::test]
async fn an_answer_is_cut_after_the_given_number_of_bytes() {
    let pair = Pair::new().await;
    pair.proxy.set(Fault::CutAfter(5));
    for _ in 0..2 {
        let (mut caller, mut server) = pair.connect().await;
        arrives(&mut caller, &mut server, "a long question is not cut").await;
        server.write_all(b"12345678").await.unwrap();
        let mut answer = Vec::new();
        let end = caller.read_to_end(&mut answer).await;
        assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert!(
            b"12345".starts_with(&answer),
            "{answer:?}: at most what was let through"
        );
    }
}
