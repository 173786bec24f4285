//! Ends what an earlier server left behind on the same data.
//!
//! After `kill -9` of the platform its server is still shutting down; after `kill -9` of the server
//! its backends may still run. Starting a second server beside them would damage the data, and
//! PostgreSQL's own check goes by a process number that may mean another process by now. So: find
//! the processes that work *in* the data directory (every PostgreSQL process does), end them, and
//! only then judge the pid file.

use std::{
    fs,
    os::fd::OwnedFd,
    path::Path,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

use crate::Error;

/// The caller holds the lock on the root, so whatever still runs there belongs to nobody.
pub(crate) fn end_all(data: &Path) -> Result<(), Error> {
    for (signal, patience) in [
        (Signal::INT, Duration::from_secs(10)),
        (Signal::QUIT, Duration::from_secs(8)),
        (Signal::KILL, Duration::from_secs(8)),
    ] {
        let left = running_in(data);
        if left.is_empty() {
            return forget_foreign_pid(data);
        }
        tracing::warn!(pids = ?left.iter().map(|p| p.pid).collect::<Vec<_>>(), "ending an earlier server");
        let postmaster = recorded_pid(data);
        // A fast shutdown is the postmaster's to lead; without one its backends are told directly.
        let led = left.iter().any(|process| Some(process.pid) == postmaster);
        for process in &left {
            let leads = Some(process.pid) == postmaster;
            if leads || !led || signal != Signal::INT {
                process.signal(if leads || signal != Signal::INT {
                    signal
                } else {
                    Signal::TERM
                })?;
            }
        }
        wait_until_gone(&left, patience);
    }
    let left = running_in(data);
    if left.is_empty() {
        return forget_foreign_pid(data);
    }
    Err(Error::Leftovers {
        data: data.to_owned(),
        pids: left.iter().map(|process| process.pid).collect(),
    })
}

struct Leftover {
    pid: i32,
    descriptor: OwnedFd,
}

impl Leftover {
    fn signal(&self, signal: Signal) -> Result<(), Error> {
        match pidfd_send_signal(&self.descriptor, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(Error::Signal(error.into())),
        }
    }
}

fn running_in(data: &Path) -> Vec<Leftover> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| works_in(*pid, data))
        .filter_map(|pid| {
            let descriptor = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
            // The number was looked at before it was pinned; look again now that it is.
            works_in(pid, data).then_some(Leftover { pid, descriptor })
        })
        .collect()
}

fn works_in(pid: i32, data: &Path) -> bool {
    let is_postgres = fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "postgres");
    is_postgres && fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|directory| directory == data)
}

fn wait_until_gone(processes: &[Leftover], patience: Duration) {
    let deadline = Instant::now() + patience;
    for process in processes {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: left.as_secs().cast_signed(),
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut fds = [PollFd::new(&process.descriptor, PollFlags::IN)];
        let _ = poll(&mut fds, Some(&timeout));
    }
}

fn recorded_pid(data: &Path) -> Option<i32> {
    fs::read_to_string(data.join("postmaster.pid"))
        .ok()?
        .lines()
        .next()?
        .trim()
        .parse()
        .ok()
}

/// PostgreSQL copes with a pid file whose process is gone, but refuses to start when the number has
/// been given to another process of its account since.
fn forget_foreign_pid(data: &Path) -> Result<(), Error> {
    let Some(pid) = recorded_pid(data) else { return Ok(()) };
    if !Path::new("/proc").join(pid.to_string()).exists() {
        return Ok(());
    }
    let path = data.join("postmaster.pid");
    fs::remove_file(&path).map_err(Error::files("remove the stale", &path))
}
