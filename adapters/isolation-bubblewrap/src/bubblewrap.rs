//! The grade `sandbox`: one bubblewrap per command.
//!
//! The command waits behind `--block-fd` until its limits hold, so nothing of it runs unlimited.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use async_trait::async_trait;
use command_fds::{CommandFdExt, FdMapping};
use contracts::Isolation as Grade;
use execution_plane_ports::{GradeReport, Isolation, IsolationError, Limits, Mount, Running, SandboxCommand};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use tokio::process::Command;

use crate::cgroup::{Cgroups, CommandGroups};
use crate::layout::{Arguments, WORK, describe};
use crate::procfs;
use crate::running::SandboxRunning;
use crate::starter::Starter;

/// Below it, descriptors belong to the job.
const FIRST_OWN_DESCRIPTOR: i32 = 40;

/// How bubblewrap is used.
#[derive(Debug, Clone)]
pub struct BubblewrapConfig {
    /// The program; looked up in PATH when it has no slash.
    pub program: PathBuf,
    /// Directories that every job may read, for example where ansible-core is installed.
    pub shared: Vec<PathBuf>,
}

impl Default for BubblewrapConfig {
    fn default() -> Self {
        Self {
            program: PathBuf::from("bwrap"),
            shared: Vec::new(),
        }
    }
}

/// Starts commands in bubblewrap sandboxes.
pub struct Bubblewrap {
    program: PathBuf,
    shared: Vec<Mount>,
    cgroups: Cgroups,
    report: GradeReport,
    starter: Arc<Starter>,
}

impl Bubblewrap {
    /// Finds bubblewrap, runs it once, and notes what this machine holds.
    ///
    /// # Errors
    /// [`IsolationError::Unavailable`] when no sandbox can be made here, with bubblewrap's own words.
    pub async fn probe(config: BubblewrapConfig) -> Result<Self, IsolationError> {
        let unavailable = |detail: String| IsolationError::Unavailable {
            grade: Grade::Sandbox,
            detail,
        };
        let program = find_program(&config.program).ok_or_else(|| {
            unavailable(format!(
                "{} is not installed (Debian: bubblewrap)",
                config.program.display()
            ))
        })?;
        let cgroups = Cgroups::discover();
        let starter = Starter::new().map_err(|error| unavailable(error.to_string()))?;
        let report = report(&cgroups);
        let shared = config.shared.into_iter().map(Mount::read_only).collect();
        let adapter = Self {
            program,
            shared,
            cgroups,
            report,
            starter: Arc::new(starter),
        };
        let mut running = adapter.start(trial()).await.map_err(|error| match error {
            IsolationError::Start { source, .. } => unavailable(source.to_string()),
            other => other,
        })?;
        let ended = running.wait().await.map_err(|error| unavailable(error.to_string()))?;
        if ended.code() == 0 {
            Ok(adapter)
        } else {
            Err(unavailable(format!("a trial ended with {}", ended.code())))
        }
    }

    fn command(&self, arguments: Arguments, command: SandboxCommand) -> Result<Command, IsolationError> {
        let mut child = Command::new(&self.program);
        child
            .args(&arguments.words)
            .arg("--")
            .args(&command.argv)
            .env_clear()
            .envs(&command.environment)
            .stdin(if command.stdin { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mappings = arguments
            .descriptors
            .into_iter()
            .chain(command.descriptors)
            .map(|(parent_fd, child_fd)| FdMapping { parent_fd, child_fd })
            .collect();
        child
            .fd_mappings(mappings)
            .map_err(|_| IsolationError::Refused("two descriptors have the same number".to_owned()))?;
        Ok(child)
    }

    /// Reads which process is the namespace's init, and sets its limits while it waits.
    fn limit(&self, id: &str, init: Pid, limits: &Limits) -> std::io::Result<CommandGroups> {
        let bound = |value: Option<u64>| Rlimit {
            current: value,
            maximum: value,
        };
        prlimit(Some(init), Resource::Core, bound(Some(0)))?;
        if limits.open_files.is_some() {
            prlimit(Some(init), Resource::Nofile, bound(limits.open_files))?;
        }
        if limits.memory_bytes.is_some() && !self.cgroups.limits_memory() {
            prlimit(Some(init), Resource::As, bound(limits.memory_bytes))?;
        }
        self.cgroups.enter(id, init.as_raw_nonzero().get(), limits)
    }
}

#[async_trait]
impl Isolation for Bubblewrap {
    fn report(&self) -> &GradeReport {
        &self.report
    }

    fn work_directory(&self, _id: &str) -> PathBuf {
        PathBuf::from(WORK)
    }

    async fn start(&self, command: SandboxCommand) -> Result<Box<dyn Running>, IsolationError> {
        check_runnable(&command)?;
        let failed = |step| move |source: std::io::Error| IsolationError::Start { step, source };
        let mut arguments = Arguments::new(FIRST_OWN_DESCRIPTOR);
        let (info_reader, info_writer) = pipe().map_err(failed("making pipes"))?;
        let (block_reader, block_writer) = pipe().map_err(failed("making pipes"))?;
        arguments.descriptor("--info-fd", info_writer);
        arguments.descriptor("--block-fd", block_reader);
        describe(&mut arguments, &command, &self.shared)?;
        let (id, limits) = (command.id.clone(), command.limits);
        let child = self.command(arguments, command)?;
        let mut child = self.starter.start(child).await.map_err(failed("starting bubblewrap"))?;
        let Some(init) = read_init(info_reader).await else {
            return Err(failed("building the sandbox")(std::io::Error::other(
                last_words(&mut child).await,
            )));
        };
        let handle = procfs::open(init)
            .ok_or_else(|| failed("following the sandbox")(std::io::Error::other("it ended before it began")))?;
        let groups = self.limit(&id, init, &limits).map_err(failed("setting limits"))?;
        rustix::io::write(&block_writer, b"1").map_err(|error| failed("releasing the command")(error.into()))?;
        Ok(Box::new(SandboxRunning::new(
            child,
            init,
            handle,
            groups,
            Arc::clone(&self.starter),
        )))
    }

    /// A sandbox dies with the thread that started it, so this only waits until the kernel is done.
    async fn end_leftovers(&self, attempt_mark: &str) {
        let pair = format!("PLATFORM_ATTEMPT={attempt_mark}");
        loop {
            let left = procfs::carrying(&pair);
            if left.is_empty() {
                return;
            }
            procfs::signal_all(&left, Signal::KILL);
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
}

fn pipe() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = std::io::pipe()?;
    Ok((reader.into(), writer.into()))
}

/// `{"child-pid": N, …}`, written once the namespaces exist; nothing when bubblewrap failed.
async fn read_init(info: OwnedFd) -> Option<Pid> {
    let mut receiver = tokio::net::unix::pipe::Receiver::from_owned_fd(info).ok()?;
    let mut text = Vec::new();
    loop {
        let read = tokio::io::AsyncReadExt::read_buf(&mut receiver, &mut text).await.ok()?;
        if let Ok(value) = serde_json::from_slice::<serde_json::Value>(&text) {
            let raw = value.get("child-pid")?.as_i64()?;
            return Pid::from_raw(i32::try_from(raw).ok()?);
        }
        if read == 0 {
            return None;
        }
    }
}

async fn last_words(child: &mut tokio::process::Child) -> String {
    let mut text = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        drop(tokio::io::AsyncReadExt::read_to_string(&mut stderr, &mut text).await);
    }
    drop(child.wait().await);
    let text = text.trim();
    if text.is_empty() {
        "bubblewrap ended without a word".to_owned()
    } else {
        text.to_owned()
    }
}

fn check_runnable(command: &SandboxCommand) -> Result<(), IsolationError> {
    let program = command
        .argv
        .first()
        .ok_or_else(|| IsolationError::Refused("there is no program to run".to_owned()))?;
    let path = Path::new(program);
    if path.is_absolute() && !path.exists() {
        return Err(IsolationError::NotRunnable {
            program: path.display().to_string(),
            detail: "there is no such file".to_owned(),
        });
    }
    if command
        .descriptors
        .iter()
        .any(|(_, number)| !(3..FIRST_OWN_DESCRIPTOR).contains(number))
    {
        return Err(IsolationError::Refused(format!(
            "descriptors are 3 to {}",
            FIRST_OWN_DESCRIPTOR - 1
        )));
    }
    Ok(())
}

pub(crate) fn find_program(name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return name.canonicalize().ok();
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin:/usr/sbin:/sbin".into());
    std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|candidate| is_program(candidate))
}

fn is_program(path: &Path) -> bool {
    let mut magic = [0; 1];
    std::fs::File::open(path)
        .and_then(|mut file| file.read(&mut magic))
        .is_ok_and(|read| read > 0)
}

fn trial() -> SandboxCommand {
    SandboxCommand {
        id: format!("trial-{}", std::process::id()),
        argv: vec!["/usr/bin/env".into(), "true".into()],
        environment: [("PATH".into(), "/usr/bin:/bin".into())].into(),
        files: Vec::new(),
        mounts: Vec::new(),
        directory: PathBuf::from(WORK),
        network: execution_plane_ports::Network::None,
        limits: Limits::default(),
        stdin: false,
        descriptors: Vec::new(),
    }
}

fn report(cgroups: &Cgroups) -> GradeReport {
    let mut holds: Vec<String> = [
        "own user, pid, mount, ipc, uts and cgroup namespaces",
        "read-only root with only the system's programs in it",
        "work directory and secrets on memory",
        "no capabilities and no new privileges",
        "environment cleared",
        "own network namespace where the job type needs none",
        "limit on open files, no core dumps",
    ]
    .map(str::to_owned)
    .into();
    let mut lacks = vec!["no seccomp filter: bubblewrap brings none of its own".to_owned()];
    if cgroups.limits_memory() {
        holds.push("memory limit of the whole command by control group".to_owned());
    } else {
        holds.push("address space limit of each process".to_owned());
        lacks.push("no memory limit over all processes together: no writable memory control group".to_owned());
    }
    if cgroups.limits_processes() {
        holds.push("limit on processes by control group".to_owned());
    } else {
        lacks.push("no limit on processes: no writable pids control group".to_owned());
    }
    GradeReport {
        grade: Grade::Sandbox,
        holds,
        lacks,
    }
}
