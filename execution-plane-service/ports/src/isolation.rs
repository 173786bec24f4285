//! The port to whatever keeps a job's processes apart from the runner and the machine.
//!
//! Invariants: a grade is a promise (`process` < `sandbox` < `container`), and what an adapter could
//! not hold on this machine stands in its [`GradeReport`], so that a result can say what was used.
//! When [`Running::kill`] has returned, no process of the command is left, whatever it forked.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use async_trait::async_trait;
use contracts::Isolation as Grade;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::secret_store::SecretValue;

/// What a job may reach over the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Nothing but its own loopback.
    None,
    /// The runner's network.
    Shared,
}

/// Upper bounds; `None` leaves the machine's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Address space or memory of the whole command, in bytes.
    pub memory_bytes: Option<u64>,
    /// Processes and threads.
    pub processes: Option<u64>,
    /// Open files of each process.
    pub open_files: Option<u64>,
    /// Size of the tmpfs work directory, in bytes.
    pub work_bytes: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: Some(2 << 30),
            processes: Some(512),
            open_files: Some(4096),
            work_bytes: Some(256 << 20),
        }
    }
}

/// What a file of the job holds.
#[derive(Debug, Clone)]
pub enum FileContent {
    Plain(Vec<u8>),
    Secret(SecretValue),
}

impl FileContent {
    /// The bytes to write.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Plain(bytes) => bytes,
            Self::Secret(value) => value.expose(),
        }
    }
}

/// A file that exists before the command starts, on memory only, readable by the job alone.
#[derive(Debug, Clone)]
pub struct JobFile {
    /// Relative to the work directory; no `..`.
    pub path: String,
    pub content: FileContent,
    /// Permission bits, for example `0o400`.
    pub mode: u32,
}

/// A directory or file of the machine that the command sees, under the same path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub path: PathBuf,
    pub writable: bool,
}

impl Mount {
    /// A mount that the command may only read.
    #[must_use]
    pub fn read_only(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            writable: false,
        }
    }

    /// A mount that the command may write.
    #[must_use]
    pub fn writable(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            writable: true,
        }
    }
}

/// A command to run apart from everything else.
#[derive(Debug)]
pub struct SandboxCommand {
    /// Unique among the commands that run at once; names control groups and scratch directories.
    pub id: String,
    /// Program and arguments.
    pub argv: Vec<OsString>,
    /// The whole environment: nothing is inherited. Every command carries `PLATFORM_ATTEMPT`.
    pub environment: BTreeMap<OsString, OsString>,
    pub files: Vec<JobFile>,
    pub mounts: Vec<Mount>,
    /// Where the command starts: the work directory, or a mount.
    pub directory: PathBuf,
    pub network: Network,
    pub limits: Limits,
    /// Whether standard input is a pipe ([`Running::take_stdin`]) or `/dev/null`.
    pub stdin: bool,
    /// Descriptors handed over under the given numbers (3 and up).
    pub descriptors: Vec<(OwnedFd, i32)>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Exited(i32),
    Signalled(i32),
}

impl Ended {
    /// The code that a shell would show: 128 + signal for a killed command.
    #[must_use]
    pub const fn code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signalled(signal) => 128 + signal,
        }
    }
}

/// What an adapter gives on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GradeReport {
    pub grade: Grade,
    /// What holds, in words for people ("own pid namespace", "read-only root").
    pub holds: Vec<String>,
    /// What does not, and why ("no seccomp filter: …").
    pub lacks: Vec<String>,
}

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
pub enum IsolationError {
    /// This machine cannot give the grade at all.
    #[error("isolation {grade} is not available here: {detail}", grade = grade_word(*.grade))]
    Unavailable { grade: Grade, detail: String },
    /// The command itself is not acceptable.
    #[error("the command cannot be isolated: {0}")]
    Refused(String),
    /// The program does not exist or is not executable.
    #[error("{program} cannot be run: {detail}")]
    NotRunnable { program: String, detail: String },
    /// Starting it failed in the machine.
    #[error("starting the isolated command failed while {step}")]
    Start {
        step: &'static str,
        #[source]
        source: std::io::Error,
    },
}

/// The word of a grade on the wire.
#[must_use]
pub const fn grade_word(grade: Grade) -> &'static str {
    match grade {
        Grade::Process => "process",
        Grade::Sandbox => "sandbox",
        Grade::Container => "container",
    }
}

/// Starts commands at one grade.
#[async_trait]
pub trait Isolation: Send + Sync {
    /// The grade, and what of it holds here.
    fn report(&self) -> &GradeReport;

    /// Where the command named `id` sees its own directory: on memory, gone with the command.
    fn work_directory(&self, id: &str) -> PathBuf;

    /// Starts `command`.
    ///
    /// # Errors
    /// [`IsolationError`]; nothing of the command runs then.
    async fn start(&self, command: SandboxCommand) -> Result<Box<dyn Running>, IsolationError>;

    /// Ends what earlier processes of this runner left behind under the attempt's mark, where the
    /// grade does not already end it together with the runner.
    async fn end_leftovers(&self, attempt_mark: &str);
}

/// A command that was started. Dropping it kills the command.
#[async_trait]
pub trait Running: Send {
    fn take_stdin(&mut self) -> Option<Box<dyn AsyncWrite + Send + Unpin>>;
    fn take_stdout(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>>;
    fn take_stderr(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>>;

    /// Waits for the command's own end. What it left running is ended too before this returns.
    /// Safe to drop and call again.
    ///
    /// # Errors
    /// When the machine does not tell.
    async fn wait(&mut self) -> std::io::Result<Ended>;

    /// Asks every process of the command to end (SIGTERM); returns at once.
    fn terminate(&mut self);

    /// Ends every process of the command (SIGKILL) and waits until none is left.
    async fn kill(&mut self);
}
