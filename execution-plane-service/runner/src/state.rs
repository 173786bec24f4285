//! The state directory: what a runner must still know after it was killed.
//!
//! `attempts/<id>/lease.json` is written before anything of the attempt begins, `begun` before its
//! first process can start, `report.json` when its end is known; the directory goes when the service
//! has accepted the end. `content/<sha256>/` holds unpacked bundles.
//!
//! Nothing here is synced: these files must outlive the process, not the machine. After a power
//! failure no job runs any more, and the service, which synced the lease, declares the attempt lost.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use execution_plane_api::Lease;
use kernel::id::AttemptId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::attempt::report::Report;

const LEASE: &str = "lease.json";
const BEGUN: &str = "begun";
const REPORT: &str = "report.json";
const SESSION: &str = "session.json";

/// Why the directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("{path} is in use by another runner")]
    InUse { path: PathBuf },
    #[error("{path} cannot be {action}")]
    Io {
        path: PathBuf,
        action: &'static str,
        #[source]
        source: io::Error,
    },
}

/// The directory, held by one runner at a time.
pub(crate) struct StateDirectory {
    root: PathBuf,
    _lock: File,
}

/// The token of the last session: opens the next one when the enrolment token is used up.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedSession {
    pub(crate) token: String,
}

/// What is remembered of a lease.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedLease {
    pub(crate) lease: Lease,
    pub(crate) received_at: DateTime<Utc>,
}

/// What an earlier self of this runner left.
pub(crate) struct LeftBehind {
    pub(crate) home: Home,
    pub(crate) saved: SavedLease,
    pub(crate) begun: bool,
    pub(crate) report: Option<Report>,
}

fn fault(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> StateError {
    let path = path.to_owned();
    move |source| StateError::Io { path, action, source }
}

impl StateDirectory {
    pub(crate) fn open(root: &Path) -> Result<Self, StateError> {
        let attempts = root.join("attempts");
        let mut private = std::fs::DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(&attempts).map_err(fault(&attempts, "created"))?;
        // Jobs name directories by their real place.
        let root = root.canonicalize().map_err(fault(root, "found"))?;
        let path = root.join("lock");
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(fault(&path, "opened"))?;
        match rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { root, _lock: lock }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(StateError::InUse { path: root }),
            Err(error) => Err(fault(&path, "locked")(error.into())),
        }
    }

    pub(crate) fn content(&self) -> PathBuf {
        self.root.join("content")
    }

    pub(crate) fn home(&self, attempt: AttemptId) -> Home {
        Home(self.root.join("attempts").join(attempt.to_string()))
    }

    pub(crate) fn session(&self) -> Option<SavedSession> {
        read_json(&self.root.join(SESSION))
    }

    pub(crate) fn save_session(&self, token: &str) -> Result<(), StateError> {
        let path = self.root.join(SESSION);
        write_json(
            &path,
            &SavedSession {
                token: token.to_owned(),
            },
        )
        .map_err(fault(&path, "written"))
    }

    /// Attempts of an earlier self. What cannot be read was never fully recorded, so nothing of it
    /// ran, and it is cleared away.
    pub(crate) fn left_behind(&self) -> Result<Vec<LeftBehind>, StateError> {
        let attempts = self.root.join("attempts");
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&attempts)
            .map_err(fault(&attempts, "listed"))?
            .flatten()
        {
            let home = Home(entry.path());
            match home.clone().read() {
                Some(left) => found.push(left),
                None => home.forget(),
            }
        }
        Ok(found)
    }

    /// What is kept of an attempt that this runner has begun already.
    pub(crate) fn begun_before(&self, attempt: AttemptId) -> Option<LeftBehind> {
        self.home(attempt).read().filter(|left| left.begun)
    }
}

/// The directory of one attempt.
#[derive(Clone)]
pub(crate) struct Home(PathBuf);

impl Home {
    fn read(self) -> Option<LeftBehind> {
        Some(LeftBehind {
            saved: read_json(&self.0.join(LEASE))?,
            begun: self.0.join(BEGUN).exists(),
            report: read_json(&self.0.join(REPORT)),
            home: self,
        })
    }

    /// Records the lease; from here on the attempt survives a restart.
    pub(crate) fn record_lease(&self, saved: &SavedLease) -> io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        write_json(&self.0.join(LEASE), saved)
    }

    /// Records that the job may have begun, before it does.
    pub(crate) fn record_begin(&self) -> io::Result<()> {
        File::create(self.0.join(BEGUN)).map(drop)
    }

    pub(crate) fn record_report(&self, report: &Report) -> io::Result<()> {
        write_json(&self.0.join(REPORT), report)
    }

    pub(crate) fn output(&self) -> PathBuf {
        self.0.join("output")
    }

    /// A directory of the attempt, made when it is not there.
    pub(crate) fn directory(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        Ok(path)
    }

    /// The service has accepted the end, or the attempt is not ours any more.
    pub(crate) fn forget(&self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.0.display(), %error, "an ended attempt's directory cannot be removed");
        }
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Whole or not at all.
fn write_json<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&fresh)?;
    file.write_all(&serde_json::to_vec(value)?)?;
    std::fs::rename(&fresh, path)
}
