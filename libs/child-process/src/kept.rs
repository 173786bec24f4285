//! A running child, kept by the thread that started it.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus},
    sync::{Arc, Condvar, Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::sync::watch;

use crate::DeathSignal;

/// A child whose life is bound to this process. Dropping the handle sends the child its death
/// signal and does not wait for it.
#[derive(Debug)]
pub struct KeptChild {
    pid: u32,
    descriptor: OwnedFd,
    death: DeathSignal,
    exit: Arc<Exit>,
    seen: watch::Receiver<Option<ExitStatus>>,
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
}

#[derive(Debug, Default)]
struct Exit {
    status: Mutex<Option<ExitStatus>>,
    changed: Condvar,
}

struct Started {
    child: Child,
    descriptor: OwnedFd,
}

impl KeptChild {
    pub(crate) fn spawn(mut command: Command, death: DeathSignal) -> io::Result<Self> {
        let exit = Arc::new(Exit::default());
        let (publish, seen) = watch::channel(None);
        let (report, started) = mpsc::channel::<io::Result<Parts>>();
        let keeper_exit = Arc::clone(&exit);
        thread::Builder::new()
            .name("child-keeper".into())
            .spawn(move || match start(&mut command) {
                Ok(mut started) => {
                    let Ok(parts) = Parts::take(&mut started) else { return };
                    let handed_over = report.send(Ok(parts)).is_ok();
                    if !handed_over {
                        let _ = started.child.kill();
                    }
                    if let Ok(status) = started.child.wait() {
                        *keeper_exit.status.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
                        keeper_exit.changed.notify_all();
                        publish.send_replace(Some(status));
                    }
                }
                Err(error) => {
                    let _ = report.send(Err(error));
                }
            })?;
        let parts = started
            .recv()
            .map_err(|_| io::Error::other("the keeper thread ended at once"))??;
        Ok(Self {
            pid: parts.pid,
            descriptor: parts.descriptor,
            death,
            exit,
            seen,
            stdin: parts.stdin,
            stdout: parts.stdout,
            stderr: parts.stderr,
        })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends a signal to the child; a child that is gone already is no error.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(&self.descriptor, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The exit status if the child has ended.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        *self.exit.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks until the child has ended, at most `limit`; `None` when it still runs.
    pub fn wait_for(&self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        let mut status = self.exit.status.lock().unwrap_or_else(PoisonError::into_inner);
        while status.is_none() {
            let left = deadline.checked_duration_since(Instant::now())?;
            status = self
                .exit
                .changed
                .wait_timeout(status, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        *status
    }

    /// Resolves when the child has ended; `None` when its status could not be learned.
    pub async fn exited(&self) -> Option<ExitStatus> {
        let mut seen = self.seen.clone();
        seen.wait_for(Option::is_some).await.ok().and_then(|status| *status)
    }
}

impl Drop for KeptChild {
    fn drop(&mut self) {
        if self.exit_status().is_none() {
            let _ = self.signal(self.death.signal());
            // One that was stopped would not take notice of it.
            let _ = self.signal(Signal::CONT);
        }
    }
}

/// What the handle takes from the child; the keeper keeps the child itself, to wait for it.
struct Parts {
    pid: u32,
    descriptor: OwnedFd,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

impl Parts {
    fn take(started: &mut Started) -> io::Result<Self> {
        Ok(Self {
            pid: started.child.id(),
            descriptor: started.descriptor.as_fd().try_clone_to_owned()?,
            stdin: started.child.stdin.take(),
            stdout: started.child.stdout.take(),
            stderr: started.child.stderr.take(),
        })
    }
}

/// The descriptor is opened before anyone waits for the child, so its number cannot have been
/// given to another process.
fn start(command: &mut Command) -> io::Result<Started> {
    let mut child = command.spawn()?;
    match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
        Ok(descriptor) => Ok(Started { child, descriptor }),
        Err(error) => {
            child.kill()?;
            child.wait()?;
            Err(error.into())
        }
    }
}
