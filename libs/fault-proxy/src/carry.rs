//! One connection: two directions, and how it ends.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::{Fault, Way};

const PIECE: usize = 16 * 1024;

/// Has the connections end in a reset instead of an orderly close, once they are dropped.
pub fn reset(streams: &[&TcpStream]) {
    for stream in streams {
        // A stream that is gone already needs no reset.
        let _ = stream.set_zero_linger();
    }
}

/// Passes bytes on until both sides have ended, or the connection is cut.
pub async fn carry(mut caller: TcpStream, mut server: TcpStream, fault: watch::Receiver<Fault>) {
    for stream in [&caller, &server] {
        let _ = stream.set_nodelay(true);
    }
    let mut told = fault.clone();
    let passed = {
        let (from_caller, to_caller) = caller.split();
        let (from_server, to_server) = server.split();
        tokio::select! {
            _ = told.wait_for(|fault| fault.resets()) => Err(io::ErrorKind::ConnectionReset.into()),
            passed = async {
                tokio::try_join!(
                    pass(from_caller, to_server, Way::ToServer, fault.clone()),
                    pass(from_server, to_caller, Way::ToCaller, fault),
                )
            } => passed,
        }
    };
    if passed.is_err() {
        reset(&[&caller, &server]);
    }
}

/// One direction, to its end.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    way: Way,
    mut fault: watch::Receiver<Fault>,
) -> io::Result<()> {
    let gone = |_| io::Error::from(io::ErrorKind::ConnectionReset);
    let mut piece = vec![0; PIECE];
    let mut passed = 0;
    loop {
        // What is held stays with its sender, as it would on a network: it is read when the fault ends.
        fault.wait_for(|fault| !fault.holds(way)).await.map_err(gone)?;
        let read = tokio::select! {
            biased;
            changed = fault.changed() => {
                changed.map_err(gone)?;
                continue;
            }
            read = from.read(&mut piece) => read?,
        };
        if read == 0 {
            return to.shutdown().await;
        }
        let now = *fault.borrow();
        if let Fault::Delay(pause) = now {
            tokio::time::sleep(pause).await;
        }
        if let (Fault::CutAfter(limit), Way::ToCaller) = (now, way) {
            let left = usize::try_from(limit.saturating_sub(passed)).unwrap_or(usize::MAX);
            if read > left {
                to.write_all(&piece[..left]).await?;
                return Err(io::ErrorKind::ConnectionReset.into());
            }
        }
        to.write_all(&piece[..read]).await?;
        passed += read as u64;
    }
}
