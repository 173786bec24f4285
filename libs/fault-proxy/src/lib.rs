//! A TCP connection that breaks when it is told to, so that tests can show what callers make of it.
//!
//! A [`FaultProxy`] stands between one caller and one server and passes bytes on, until a [`Fault`] is set.
//! A fault holds for open and for new connections, from when it is set until the next one.
//!
//! Invariants: bytes that are passed on are whole and in order; what is held back is neither lost nor
//! reordered, it arrives when the fault ends, as it would behind a network that was away for a while.

mod carry;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// What is wrong with the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    #[default]
    None,
    /// Nobody listens: connections are refused, and those that were open are reset.
    Refuse,
    /// Connections are made and reset at once, and those that were open are reset.
    Reset,
    /// Every piece waits for so long before it goes on, in both directions.
    Delay(Duration),
    /// Nothing arrives in this direction, and nobody is told: a half-open connection.
    Hold(Way),
    /// Nothing arrives in either direction, and nobody is told.
    HoldAll,
    /// The connection is reset after so many bytes to the caller; each new one again.
    CutAfter(u64),
}

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    ToServer,
    ToCaller,
}

impl Fault {
    const fn resets(self) -> bool {
        matches!(self, Self::Refuse | Self::Reset)
    }

    fn holds(self, way: Way) -> bool {
        self == Self::HoldAll || self == Self::Hold(way)
    }
}

/// A running proxy on loopback; dropped, it lets go of everything.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    fault: watch::Sender<Fault>,
    accepting: JoinHandle<()>,
}

impl FaultProxy {
    /// Stands before `server`, without a fault.
    ///
    /// # Errors
    /// No port is to be had.
    pub async fn before(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((server.ip(), 0)).await?;
        let address = listener.local_addr()?;
        let fault = watch::Sender::new(Fault::None);
        let accepting = tokio::spawn(accept(listener, server, fault.subscribe()));
        Ok(Self {
            address,
            fault,
            accepting,
        })
    }

    /// Where the caller is to connect.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on `fault` holds.
    pub fn set(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }

    /// Everything is well again.
    pub fn heal(&self) {
        self.set(Fault::None);
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Accepts for ever. While connections are refused there is no listener at all.
async fn accept(listener: TcpListener, server: SocketAddr, mut fault: watch::Receiver<Fault>) {
    let Ok(address) = listener.local_addr() else { return };
    let mut listening = Some(listener);
    let mut carried = JoinSet::new();
    loop {
        if *fault.borrow_and_update() == Fault::Refuse {
            listening = None;
            if fault.changed().await.is_err() {
                return;
            }
            continue;
        }
        let listener = match listening.take() {
            Some(listener) => listener,
            None => match TcpListener::bind(address).await {
                Ok(listener) => listener,
                // Another process took the port for a moment: it is a caller's own port then, and goes again.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
            },
        };
        let listener = listening.insert(listener);
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((caller, _)) = accepted {
                    carried.spawn(connect(caller, server, fault.clone()));
                }
            }
            changed = fault.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            Some(_) = carried.join_next() => {}
        }
    }
}

async fn connect(caller: TcpStream, server: SocketAddr, fault: watch::Receiver<Fault>) {
    if fault.borrow().resets() {
        return carry::reset(&[&caller]);
    }
    match TcpStream::connect(server).await {
        Ok(upstream) => carry::carry(caller, upstream, fault).await,
        // The server itself is away: the caller sees a connection that ends at once.
        Err(_) => carry::reset(&[&caller]),
    }
}
