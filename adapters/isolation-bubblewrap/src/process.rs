//! The grade `process`: nothing is kept apart; for development, only when configured.
//!
//! What ends a command here is its process group and a mark in the environment. A child that leaves
//! the group *and* clears its environment would escape; the report says so.

use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use command_fds::{CommandFdExt, FdMapping};
use contracts::Isolation as Grade;
use execution_plane_ports::{Ended, GradeReport, Isolation, IsolationError, Running, SandboxCommand};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::Write;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::{Child, Command};

use crate::bubblewrap::find_program;
use crate::layout::relative;
use crate::procfs;
use crate::running::ended;
use crate::starter::Starter;

const TMPFS_MAGIC: i64 = 0x0102_1994;

/// How plain processes are run.
#[derive(Debug, Clone)]
pub struct PlainProcessConfig {
    /// Where work directories are made; on memory, or secrets touch the disk.
    pub scratch: PathBuf,
}

impl Default for PlainProcessConfig {
    fn default() -> Self {
        Self {
            scratch: PathBuf::from("/dev/shm"),
        }
    }
}

/// Starts commands as plain processes.
pub struct PlainProcess {
    setpriv: PathBuf,
    scratch: PathBuf,
    report: GradeReport,
    starter: Arc<Starter>,
}

impl PlainProcess {
    /// Finds what it needs.
    ///
    /// # Errors
    /// [`IsolationError::Unavailable`] when `setpriv` is missing or the scratch directory is not on
    /// memory.
    pub fn probe(config: PlainProcessConfig) -> Result<Self, IsolationError> {
        let unavailable = |detail: String| IsolationError::Unavailable {
            grade: Grade::Process,
            detail,
        };
        let setpriv = find_program(Path::new("setpriv"))
            .ok_or_else(|| unavailable("setpriv is not installed (Debian: util-linux)".to_owned()))?;
        let on_memory = rustix::fs::statfs(&config.scratch).is_ok_and(|info| info.f_type == TMPFS_MAGIC);
        if !on_memory {
            return Err(unavailable(format!(
                "{} is not on memory (tmpfs)",
                config.scratch.display()
            )));
        }
        let starter = Starter::new().map_err(|error| unavailable(error.to_string()))?;
        Ok(Self {
            setpriv,
            scratch: config.scratch,
            report: report(),
            starter: Arc::new(starter),
        })
    }
}

#[async_trait]
impl Isolation for PlainProcess {
    fn report(&self) -> &GradeReport {
        &self.report
    }

    fn work_directory(&self, id: &str) -> PathBuf {
        self.scratch.join(format!("job-{id}"))
    }

    async fn start(&self, command: SandboxCommand) -> Result<Box<dyn Running>, IsolationError> {
        let failed = |step| move |source: io::Error| IsolationError::Start { step, source };
        let program = command.argv.first().cloned().unwrap_or_default();
        if find_program(Path::new(&program)).is_none() {
            let program = program.to_string_lossy().into_owned();
            return Err(IsolationError::NotRunnable {
                program,
                detail: "there is no such program".to_owned(),
            });
        }
        let work = Scratch(self.work_directory(&command.id));
        write_files(&work.0, &command).map_err(failed("preparing the job's files"))?;
        let mark = format!("PLATFORM_COMMAND={}", command.id);
        let mut child = Command::new(&self.setpriv);
        child
            .args(["--pdeathsig", "KILL", "--no-new-privs", "--"])
            .args(&command.argv)
            .env_clear()
            .envs(&command.environment)
            .env("PLATFORM_COMMAND", &command.id)
            .current_dir(&command.directory)
            .process_group(0)
            .stdin(if command.stdin { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mappings = command
            .descriptors
            .into_iter()
            .map(|(parent_fd, child_fd)| FdMapping { parent_fd, child_fd })
            .collect();
        child
            .fd_mappings(mappings)
            .map_err(|_| IsolationError::Refused("two descriptors have the same number".to_owned()))?;
        let child = self
            .starter
            .start(child)
            .await
            .map_err(failed("starting the process"))?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let starter = Arc::clone(&self.starter);
        Ok(Box::new(ProcessRunning {
            child,
            group,
            mark,
            ended: None,
            _work: work,
            _starter: starter,
        }))
    }

    async fn end_leftovers(&self, attempt_mark: &str) {
        end_marked(&format!("PLATFORM_ATTEMPT={attempt_mark}")).await;
    }
}

/// A work directory; removed when its command is over.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn write_files(work: &Path, command: &SandboxCommand) -> io::Result<()> {
    let mut private = std::fs::DirBuilder::new();
    private.mode(0o700).recursive(true);
    private.create(work)?;
    for file in &command.files {
        let path = work.join(relative(&file.path).map_err(io::Error::other)?);
        if let Some(parent) = path.parent() {
            private.create(parent)?;
        }
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true).mode(file.mode);
        options.open(&path)?.write_all(file.content.bytes())?;
    }
    Ok(())
}

async fn end_marked(pair: &str) {
    loop {
        let left = procfs::carrying(pair);
        if left.is_empty() {
            return;
        }
        procfs::signal_all(&left, Signal::KILL);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

struct ProcessRunning {
    child: Child,
    group: Option<Pid>,
    mark: String,
    ended: Option<Ended>,
    _work: Scratch,
    _starter: Arc<Starter>,
}

impl ProcessRunning {
    fn signal(&self, signal: Signal) {
        if self.child.id().is_some()
            && let Some(group) = self.group
        {
            let _ = kill_process_group(group, signal);
        }
        procfs::signal_all(&procfs::carrying(&self.mark), signal);
    }
}

#[async_trait]
impl Running for ProcessRunning {
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
        end_marked(&self.mark).await;
        let ended = ended(status);
        self.ended = Some(ended);
        Ok(ended)
    }

    fn terminate(&mut self) {
        if self.ended.is_none() {
            self.signal(Signal::TERM);
        }
    }

    async fn kill(&mut self) {
        self.signal(Signal::KILL);
        end_marked(&self.mark).await;
        drop(self.wait().await);
    }
}

impl Drop for ProcessRunning {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.signal(Signal::KILL);
        }
    }
}

fn report() -> GradeReport {
    GradeReport {
        grade: Grade::Process,
        holds: [
            "no new privileges",
            "environment cleared",
            "work directory and secrets on memory",
        ]
        .map(str::to_owned)
        .into(),
        lacks: [
            "no namespaces: the job sees and can signal what the runner's user can",
            "no limits on memory, processes or network",
            "a child that leaves its process group and clears its environment is not ended with the job",
        ]
        .map(str::to_owned)
        .into(),
    }
}
