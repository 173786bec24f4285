//! What every job is given.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use contracts::JobSpec;
use execution_plane_ports::Isolation;
use kernel::ResourceId;
use tokio::sync::watch;

use super::https::MachineRoots;
use crate::config::Config;
use crate::output::OutputSink;
use crate::secrets::Secrets;
use crate::ssh::agent::Agent;
use crate::stop::Stop;

/// Programs and settings of this runner.
pub(crate) struct Tools {
    pub(crate) ssh: PathBuf,
    pub(crate) ansible: Option<PathBuf>,
    pub(crate) stop_grace: Duration,
    pub(crate) parallel_targets: u16,
    pub(crate) readable_logs: Vec<PathBuf>,
    pub(crate) runtime: PathBuf,
    pub(crate) artifact_limit: usize,
    pub(crate) http: reqwest::Client,
    pub(crate) machine_roots: MachineRoots,
}

impl Tools {
    pub(crate) fn of(config: &Config) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self {
            ssh: config.ssh_program.clone(),
            ansible: config.ansible_directory.clone(),
            stop_grace: config.stop_grace(),
            parallel_targets: config.parallel_targets,
            readable_logs: config.readable_logs.clone(),
            runtime: config.runtime_directory.clone(),
            // One byte more tells a file that is too large from one that just fits.
            artifact_limit: usize::try_from(config.artifact_limit_bytes)
                .unwrap_or(usize::MAX)
                .saturating_add(1),
            http,
            machine_roots: MachineRoots::default(),
        })
    }
}

/// Whether anything of the job itself was started yet, and who wants to know.
#[derive(Clone)]
pub(crate) struct Begun(watch::Sender<Option<DateTime<Utc>>>);

impl Default for Begun {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Begun {
    pub(crate) fn now(&self) {
        self.0
            .send_if_modified(|at| at.is_none().then(|| *at = Some(Utc::now())).is_some());
    }

    /// When the first process was there.
    pub(crate) fn at(&self) -> Option<DateTime<Utc>> {
        *self.0.borrow()
    }

    pub(crate) async fn happened(&self) {
        // The sender lives in self, so waiting for it cannot fail.
        drop(self.0.subscribe().wait_for(Option::is_some).await);
    }
}

/// Directories of this machine that a job may see.
pub(crate) struct Places {
    /// The unpacked bundle, read-only.
    pub(crate) content: Option<PathBuf>,
    /// Artifacts of earlier nodes, read-only.
    pub(crate) inputs: Option<PathBuf>,
    /// Where the job leaves artifacts.
    pub(crate) artifacts: PathBuf,
}

/// Everything that a job needs to run.
pub(crate) struct JobContext {
    pub(crate) spec: Arc<JobSpec>,
    pub(crate) tools: Arc<Tools>,
    pub(crate) isolation: Arc<dyn Isolation>,
    pub(crate) secrets: Secrets,
    pub(crate) places: Places,
    pub(crate) output: OutputSink,
    pub(crate) stop: Stop,
    pub(crate) begun: Begun,
    commands: AtomicU32,
    scratch: OnceLock<Scratch>,
    touched: Mutex<BTreeSet<ResourceId>>,
    agent: OnceLock<Agent>,
}

/// One command to be: its id, and the directory it will see as its own.
pub(crate) struct Slot {
    pub(crate) id: String,
    pub(crate) work: PathBuf,
}

impl JobContext {
    #[expect(
        clippy::too_many_arguments,
        reason = "the one place where the parts of a context meet"
    )]
    pub(crate) fn new(
        spec: Arc<JobSpec>,
        tools: Arc<Tools>,
        isolation: Arc<dyn Isolation>,
        secrets: Secrets,
        places: Places,
        output: OutputSink,
        stop: Stop,
        begun: Begun,
    ) -> Self {
        Self {
            spec,
            tools,
            isolation,
            secrets,
            places,
            output,
            stop,
            begun,
            commands: AtomicU32::new(0),
            scratch: OnceLock::new(),
            touched: Mutex::default(),
            agent: OnceLock::new(),
        }
    }

    /// The value of `PLATFORM_ATTEMPT` in everything that the attempt starts, here and on targets.
    pub(crate) fn mark(&self) -> String {
        self.spec.attempt_id.to_string()
    }

    /// The agent lives as long as the attempt.
    pub(crate) fn keep_agent(&self, agent: Agent) {
        drop(self.agent.set(agent));
    }

    /// Nothing of the attempt needs its agent any more.
    pub(crate) async fn end_agent(&self) {
        if let Some(agent) = self.agent.get() {
            agent.end().await;
        }
    }

    pub(crate) fn agent_socket(&self) -> Option<&Path> {
        self.agent.get().map(|agent| agent.socket.as_path())
    }

    /// Something of the attempt was, or may have been, started on that target.
    pub(crate) fn touch(&self, target: &ResourceId) {
        self.touched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(target.clone());
    }

    pub(crate) fn touched(&self) -> BTreeSet<ResourceId> {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn slot(&self) -> Slot {
        let number = self.commands.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}-{number}", self.spec.attempt_id.as_uuid().simple());
        let work = self.isolation.work_directory(&id);
        Slot { id, work }
    }

    /// A directory on memory that the runner and the attempt's commands share.
    pub(crate) fn scratch(&self) -> std::io::Result<&Path> {
        if let Some(scratch) = self.scratch.get() {
            return Ok(&scratch.0);
        }
        let fresh = Scratch::make(&self.tools.runtime, &self.mark())?;
        Ok(&self.scratch.get_or_init(|| fresh).0)
    }
}

/// Removed with the context.
struct Scratch(PathBuf);

impl Scratch {
    fn make(runtime: &Path, mark: &str) -> std::io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        let path = runtime.join(format!("attempt-{mark}"));
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => Ok(Self(path)),
            // Two parts of one attempt came here at once, or an earlier self of the runner did.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(Self(path)),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}
