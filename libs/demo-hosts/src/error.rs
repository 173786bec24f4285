//! What can keep a host from starting, or a fault from being made.

use std::{io, net::Ipv4Addr, path::PathBuf};

use child_process::LaunchError;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum HostError {
    #[error(
        "{program} is missing; run scripts/setup, or install it with: apt-get install --no-install-recommends {package}"
    )]
    Missing {
        program: &'static str,
        package: &'static str,
    },
    #[error("a platform can have 1 to 200 hosts, not {0}")]
    Count(usize),
    #[error("{0:?} is no name for a host: letters, digits and hyphens only")]
    Name(String),
    #[error("no free block of loopback addresses for port {port} (tried 127.0.10.0 to 127.0.199.0)")]
    NoAddresses { port: u16 },
    #[error("cannot {what} {path}")]
    Files {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("ssh-keygen failed for {path}: {said}")]
    Keys { path: PathBuf, said: String },
    #[error("cannot start host {name}")]
    Launch { name: String, source: LaunchError },
    #[error("host {name} ended while it was starting; its last lines:\n{log}")]
    EndedAtStart { name: String, log: String },
    #[error("host {name} did not answer on {address}:{port} in time; its last lines:\n{log}")]
    Silent {
        name: String,
        address: Ipv4Addr,
        port: u16,
        log: String,
    },
    #[error("host {name} is not running any more")]
    Gone { name: String },
}

impl HostError {
    pub(crate) fn files(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Files { what, path, source }
    }
}
