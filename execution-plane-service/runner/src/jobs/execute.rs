//! Running one isolated command to its end, whoever brings that about.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use execution_plane_api::OutputStream;
use execution_plane_ports::{Ended, IsolationError, JobFile, Limits, Mount, Network, Running, SandboxCommand};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;

use super::context::{JobContext, Slot};
use crate::output::SourceWriter;
use crate::stop::StopCause;

/// Where a command's output goes.
#[derive(Debug, Clone)]
pub(crate) enum Shown {
    /// To the attempt's output, each line after the label when there is one.
    Output { label: Option<String> },
    /// Kept for the caller, up to so many bytes of each stream.
    Kept(usize),
}

/// A command and its surroundings.
pub(crate) struct Execution {
    pub(crate) argv: Vec<OsString>,
    pub(crate) environment: BTreeMap<OsString, OsString>,
    pub(crate) files: Vec<JobFile>,
    pub(crate) mounts: Vec<Mount>,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) network: Network,
    pub(crate) stdin: Option<Vec<u8>>,
    pub(crate) descriptors: Vec<(OwnedFd, i32)>,
    pub(crate) shown: Shown,
    /// Ended after so long, whatever the attempt's own time.
    pub(crate) within: Option<Duration>,
    /// Part of the job: carries its mark and ends with it. A sweep is neither, or it would find itself
    /// where the runner's machine is the target.
    pub(crate) of_the_job: bool,
}

impl Execution {
    pub(crate) fn new(argv: impl IntoIterator<Item = OsString>) -> Self {
        Self {
            argv: argv.into_iter().collect(),
            environment: BTreeMap::new(),
            files: Vec::new(),
            mounts: Vec::new(),
            directory: None,
            network: Network::Shared,
            stdin: None,
            descriptors: Vec::new(),
            shown: Shown::Output { label: None },
            within: None,
            of_the_job: true,
        }
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Executed {
    /// None when it was never started, because a stop came first.
    pub(crate) ended: Option<Ended>,
    pub(crate) stopped: Option<StopCause>,
    /// It took longer than it was given.
    pub(crate) overran: bool,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Executed {
    pub(crate) fn code(&self) -> i32 {
        self.ended.map_or(-1, Ended::code)
    }
}

impl JobContext {
    /// Runs `execution` in `slot`.
    pub(crate) async fn execute(&self, slot: Slot, mut execution: Execution) -> Result<Executed, IsolationError> {
        if execution.of_the_job
            && let Some(cause) = self.stop.cause()
        {
            return Ok(Executed {
                stopped: Some(cause),
                ..Executed::default()
            });
        }
        let (stdin, shown) = (execution.stdin.take(), execution.shown.clone());
        let (within, of_the_job) = (execution.within, execution.of_the_job);
        let command = self.command(slot, execution, stdin.is_some());
        failpoints::hit("runner.spawn.before");
        let mut running = self.isolation.start(command).await?;
        if of_the_job {
            self.begun.now();
        }
        failpoints::hit("runner.spawn.after");
        if let (Some(bytes), Some(mut pipe)) = (stdin, running.take_stdin()) {
            // A command that does not read its input closes the pipe; that is its right.
            tokio::spawn(async move { drop(pipe.write_all(&bytes).await) });
        }
        let stdout = self.drain(running.take_stdout(), OutputStream::Stdout, &shown);
        let stderr = self.drain(running.take_stderr(), OutputStream::Stderr, &shown);
        let mut executed = self.follow(running.as_mut(), within, of_the_job).await?;
        // Every process that could hold the pipes is gone, so both end now.
        executed.stdout = stdout.await.unwrap_or_default();
        executed.stderr = stderr.await.unwrap_or_default();
        failpoints::hit("runner.job.ended");
        Ok(executed)
    }

    /// Starts a helper of the attempt, which is no part of the job: it begins nothing and carries no mark.
    pub(crate) async fn launch(
        &self,
        slot: Slot,
        mut execution: Execution,
    ) -> Result<Box<dyn Running>, IsolationError> {
        execution.of_the_job = false;
        execution.network = Network::None;
        self.isolation.start(self.command(slot, execution, false)).await
    }

    fn command(&self, slot: Slot, execution: Execution, stdin: bool) -> SandboxCommand {
        let mut environment: BTreeMap<OsString, OsString> = BTreeMap::from([
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".into()),
            ("LC_ALL".into(), "C.UTF-8".into()),
            ("USER".into(), "job".into()),
            ("HOME".into(), slot.work.clone().into()),
        ]);
        if execution.of_the_job {
            environment.insert("PLATFORM_ATTEMPT".into(), self.mark().into());
        }
        environment.extend(execution.environment);
        SandboxCommand {
            directory: execution.directory.unwrap_or_else(|| slot.work.clone()),
            id: slot.id,
            argv: execution.argv,
            environment,
            files: execution.files,
            mounts: execution.mounts,
            network: execution.network,
            limits: Limits::default(),
            stdin,
            descriptors: execution.descriptors,
        }
    }

    async fn follow(
        &self,
        running: &mut dyn Running,
        within: Option<Duration>,
        of_the_job: bool,
    ) -> Result<Executed, IsolationError> {
        let stop = async {
            if of_the_job {
                self.stop.asked().await
            } else {
                std::future::pending().await
            }
        };
        let time = async {
            match within {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let mut executed = Executed::default();
        tokio::select! {
            biased;
            ended = running.wait() => executed.ended = Some(ended.map_err(lost_sight)?),
            cause = stop => executed.stopped = Some(cause),
            () = time => executed.overran = true,
        }
        if executed.ended.is_none() {
            failpoints::hit("runner.kill.before");
            running.terminate();
            let own = tokio::time::timeout(self.tools.stop_grace, running.wait()).await;
            running.kill().await;
            failpoints::hit("runner.kill.after");
            executed.ended = match own {
                Ok(ended) => Some(ended.map_err(lost_sight)?),
                Err(_) => Some(Ended::Signalled(9)),
            };
        }
        Ok(executed)
    }

    fn drain(
        &self,
        pipe: Option<Box<dyn AsyncRead + Send + Unpin>>,
        stream: OutputStream,
        shown: &Shown,
    ) -> JoinHandle<Vec<u8>> {
        match shown {
            Shown::Output { label } => {
                let writer = self.output.source(stream, self.secrets.masks(), label.as_deref());
                tokio::spawn(to_output(pipe, writer))
            }
            Shown::Kept(limit) => tokio::spawn(kept(pipe, *limit)),
        }
    }
}

fn lost_sight(source: std::io::Error) -> IsolationError {
    IsolationError::Start {
        step: "following the command",
        source,
    }
}

async fn to_output(pipe: Option<Box<dyn AsyncRead + Send + Unpin>>, mut writer: SourceWriter) -> Vec<u8> {
    if let Some(mut pipe) = pipe {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
            writer.write(&buffer[..read]);
        }
    }
    writer.finish();
    Vec::new()
}

async fn kept(pipe: Option<Box<dyn AsyncRead + Send + Unpin>>, limit: usize) -> Vec<u8> {
    let mut all = Vec::new();
    if let Some(mut pipe) = pipe {
        let mut buffer = vec![0; 16 * 1024];
        // Reads on beyond the limit, so that the command does not block.
        while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
            let room = limit.saturating_sub(all.len());
            all.extend_from_slice(&buffer[..read.min(room)]);
        }
    }
    all
}
