//! An ssh-agent for secrets that a JobSpec delivers `as: agent`: jobs may sign with the key and never
//! see it.
//!
//! The agent runs in a sandbox of its own, gets the key on standard input, and is gone before the end of
//! the attempt is told.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use execution_plane_ports::{IsolationError, Mount, Running, SecretValue};

use crate::jobs::context::JobContext;
use crate::jobs::execute::{Execution, Shown};

/// How long an agent may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running agent; dropping it ends it.
pub(crate) struct Agent {
    pub(crate) socket: PathBuf,
    running: Mutex<Option<Box<dyn Running>>>,
}

impl Agent {
    /// Ends it and waits until it is gone.
    pub(crate) async fn end(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut running) = running {
            running.kill().await;
        }
    }
}

impl JobContext {
    /// Starts the agent when a secret is meant for one. Once, before the job.
    pub(crate) async fn start_agent(&self) -> Result<(), IsolationError> {
        let keys = self.secrets.agent_keys();
        if keys.is_empty() {
            return Ok(());
        }
        let shared = |source| IsolationError::Start {
            step: "making the attempt's directory",
            source,
        };
        let scratch = self.scratch().map_err(shared)?.to_owned();
        let socket = scratch.join("agent");
        let argv = [program("ssh-agent"), "-D".into(), "-a".into(), socket.clone().into()];
        let mut execution = Execution::new(argv);
        execution.mounts.push(Mount::writable(&scratch));
        let running = self.launch(self.slot(), execution).await?;
        let agent = Agent {
            socket,
            running: Mutex::new(Some(running)),
        };
        for key in &keys {
            self.add_key(&agent.socket, &scratch, key).await?;
        }
        self.keep_agent(agent);
        Ok(())
    }

    async fn add_key(&self, socket: &Path, scratch: &Path, key: &SecretValue) -> Result<(), IsolationError> {
        // The agent makes its socket in its own time; a client before that is refused.
        let until = tokio::time::Instant::now() + PATIENCE;
        while !socket.exists() && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let mut execution = Execution::new([program("ssh-add"), "-q".into(), "-".into()]);
        execution.environment.insert("SSH_AUTH_SOCK".into(), socket.into());
        execution.mounts.push(Mount::writable(scratch));
        execution.stdin = Some(super::access::with_newline(key).expose().to_vec());
        execution.shown = Shown::Kept(4096);
        execution.within = Some(PATIENCE);
        execution.of_the_job = false;
        let added = self.execute(self.slot(), execution).await?;
        if added.code() == 0 {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&added.stderr);
        let words = self.secrets.masks().mask_text(words.trim());
        Err(IsolationError::Refused(format!(
            "the ssh agent does not take the key: {words}"
        )))
    }
}

fn program(name: &str) -> OsString {
    Path::new("/usr/bin").join(name).into()
}
