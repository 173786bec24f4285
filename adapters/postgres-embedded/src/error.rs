//! What can go wrong between the wish for a database and a server that answers.

use std::{io, path::PathBuf};

use child_process::{AccountError, LaunchError};
use thiserror::Error;

#[derive(Debug, Error)]
pub enum Error {
    #[error(
        "found no PostgreSQL server programs (initdb and postgres, version {minimum} or later) in PATH or in \
         /usr/lib/postgresql/*/bin; run scripts/setup, or install them with: \
         apt-get install --no-install-recommends postgresql"
    )]
    NoBinaries { minimum: u32 },
    #[error(
        "the data in {data} was made by PostgreSQL {wanted}, and this machine has no programs of that version; \
         install them with: apt-get install --no-install-recommends postgresql-{wanted}"
    )]
    NoBinariesOfVersion { data: PathBuf, wanted: u32 },
    #[error("cannot tell the version of {program}")]
    Version {
        program: PathBuf,
        source: Option<io::Error>,
    },
    #[error("the data directory {0} is in use by another running process; stop that one, or choose another directory")]
    InUse(PathBuf),
    #[error(
        "PostgreSQL does not run as root but as another account (uid {uid}), and that account cannot enter \
         {directory}; choose a place that it can reach (such as /var/lib/platform-core), or run: chmod o+x {directory}"
    )]
    Unreachable { directory: PathBuf, uid: u32 },
    #[error("{path} belongs to another account (uid {owner}); run as that account, or choose another directory")]
    ForeignOwner { path: PathBuf, owner: u32 },
    #[error("there is no account for PostgreSQL to run as")]
    Account(#[from] AccountError),
    #[error("{path} holds no password for the data beside it; restore that file, or move the data directory away")]
    PasswordLost { path: PathBuf },
    #[error("the server refuses the password in {path}; restore the file that belongs to the data beside it")]
    PasswordRefused { path: PathBuf },
    #[error("cannot {what} {path}")]
    Files {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("cannot start a PostgreSQL program")]
    Launch(#[from] LaunchError),
    #[error("cannot signal a PostgreSQL process")]
    Signal(#[source] io::Error),
    #[error("initdb failed; its last lines:\n{log}")]
    InitDb { log: String },
    #[error("the server ended while it was starting; its last lines:\n{log}")]
    EndedAtStart { log: String },
    #[error("the server did not answer within {seconds} s; its last lines:\n{log}")]
    NotReady {
        seconds: u64,
        log: String,
        source: Option<tokio_postgres::Error>,
    },
    #[error("processes of an earlier server on {data} do not end: {pids:?}")]
    Leftovers { data: PathBuf, pids: Vec<i32> },
    #[error("cannot find a free loopback port")]
    NoPort(#[source] io::Error),
    #[error("a background task of the adapter was cut off")]
    CutOff,
}

impl Error {
    pub(crate) fn files(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Files { what, path, source }
    }
}
