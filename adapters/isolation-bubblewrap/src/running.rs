//! A command in a sandbox: followed by its namespace's init, which is also its kill switch.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;

use async_trait::async_trait;
use execution_plane_ports::{Ended, Running};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, pidfd_send_signal};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::Child;

use crate::cgroup::CommandGroups;
use crate::procfs;
use crate::starter::Starter;

pub(crate) struct SandboxRunning {
    child: Child,
    init: Pid,
    handle: Arc<OwnedFd>,
    ended: Option<Ended>,
    _groups: CommandGroups,
    /// The thread whose end would end the command.
    _starter: Arc<Starter>,
}

impl SandboxRunning {
    pub(crate) fn new(child: Child, init: Pid, handle: OwnedFd, groups: CommandGroups, starter: Arc<Starter>) -> Self {
        Self {
            child,
            init,
            handle: Arc::new(handle),
            ended: None,
            _groups: groups,
            _starter: starter,
        }
    }

    fn end_namespace(&self) {
        let _ = pidfd_send_signal(&*self.handle, Signal::KILL);
    }

    /// The init is only reaped after every process of its namespace is.
    async fn namespace_gone(&self) {
        if gone(&self.handle, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            return;
        }
        let handle = Arc::clone(&self.handle);
        drop(tokio::task::spawn_blocking(move || gone(&handle, None)).await);
    }
}

#[async_trait]
impl Running for SandboxRunning {
    fn take_stdin(&mut self) -> Option<Box<dyn AsyncWrite + Send + Unpin>> {
        self.child.stdin.take().map(|pipe| Box::new(pipe) as _)
    }

    fn take_stdout(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>> {
        self.child.stdout.take().map(|pipe| Box::new(pipe) as _)
    }

    fn take_stderr(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>> {
        self.child.stderr.take().map(|pipe| Box::new(pipe) as _)
    }

    async fn wait(&mut self) -> io::Result<Ended> {
        if let Some(ended) = self.ended {
            return Ok(ended);
        }
        let status = self.child.wait().await?;
        self.end_namespace();
        self.namespace_gone().await;
        let ended = ended(status);
        self.ended = Some(ended);
        Ok(ended)
    }

    fn terminate(&mut self) {
        if self.ended.is_none() {
            procfs::signal_all(&procfs::descendants(self.init), Signal::TERM);
        }
    }

    async fn kill(&mut self) {
        self.end_namespace();
        self.namespace_gone().await;
        drop(self.wait().await);
    }
}

impl Drop for SandboxRunning {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.end_namespace();
        }
    }
}

/// Whether the process ended within `limit` (none: for ever).
fn gone(process: &OwnedFd, limit: Option<&Timespec>) -> bool {
    loop {
        match poll(&mut [PollFd::new(process, PollFlags::IN)], limit) {
            Err(rustix::io::Errno::INTR) => {}
            ready => return ready.is_ok_and(|count| count > 0),
        }
    }
}

pub(crate) fn ended(status: std::process::ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Exited(code),
        (None, signal) => Ended::Signalled(signal.unwrap_or(0)),
    }
}
