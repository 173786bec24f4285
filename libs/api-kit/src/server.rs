//! Serving a router until told to stop, and then ending well.

use std::io;
use std::time::Duration;

use axum::middleware::AddExtension;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Layer as _;

use crate::Closing;
use crate::peer::PeerAddress;

/// The router, told who is at the other end.
type Served = AddExtension<Router, PeerAddress>;

/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(20);
/// How long requests in flight may take once the service is ending.
const DRAIN: Duration = Duration::from_secs(10);

/// Serves `router` on `listener` until `shutdown`. Then no connection is accepted any more, waiting
/// requests are told by [`Closing`], those in flight get ten seconds, and the rest is cut.
///
/// # Errors
/// The listener fails for good.
pub async fn serve(listener: TcpListener, router: Router, shutdown: CancellationToken) -> io::Result<()> {
    let router = router.layer(Extension(Closing(shutdown.clone())));
    let connections = TaskTracker::new();
    let cut = CancellationToken::new();
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let service = Extension(PeerAddress(peer.ip())).layer(router.clone());
                connections.spawn(connection(stream, service, shutdown.clone(), cut.clone()));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                // Out of descriptors, most likely: others must end first.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(DRAIN, connections.wait()).await.is_err() {
        tracing::warn!(open = connections.len(), "connections are cut at the end");
        cut.cancel();
        connections.wait().await;
    }
    Ok(())
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn connection(stream: TcpStream, service: Served, shutdown: CancellationToken, cut: CancellationToken) {
    // Small answers must not wait for one another's acknowledgement.
    let _ = stream.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
        .with_upgrades();
    tokio::pin!(connection);
    let mut ending = false;
    loop {
        tokio::select! {
            // The end is told to the connection before a handler that waits for it answers; otherwise the
            // next request on the connection would still be served.
            biased;
            () = shutdown.cancelled(), if !ending => {
                ending = true;
                connection.as_mut().graceful_shutdown();
            }
            () = cut.cancelled() => return,
            outcome = connection.as_mut() => {
                if let Err(error) = outcome {
                    tracing::debug!(%error, "a connection ended early");
                }
                return;
            }
        }
    }
}
