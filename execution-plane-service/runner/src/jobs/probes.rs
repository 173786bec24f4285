//! Looking once: what a single check saw, judged by the domain's pure rules.
//!
//! A check that could look and saw something else has failed; one that could not look is
//! inconclusive. Neither proves anything.

use std::path::Path;
use std::time::Duration;

use contracts::EvidenceResult;
use execution_plane_domain::job::{CheckTarget, Command, CommandCheck, LogCheck, ValueCheck};
use execution_plane_ports::Mount;
use kernel::ResourceId;

use super::context::JobContext;
use super::execute::{Execution, Shown};
use crate::ssh::client::{Remote, RemoteOutcome};
use crate::ssh::log::RemoteEnd;
use crate::ssh::{Access, quote, wrapper};

/// Bytes of each stream or body that are looked at and kept as the source.
pub(super) const KEPT: usize = 1 << 20;
/// Longest time for one command.
const PATIENCE: Duration = Duration::from_secs(60);

/// What one look saw.
#[derive(Debug, Clone)]
pub(super) struct Sight {
    pub(super) result: EvidenceResult,
    pub(super) message: String,
    /// What was asked and what was seen.
    pub(super) source: Vec<u8>,
}

impl Sight {
    pub(super) fn judged(verdict: Result<(), String>, source: Vec<u8>) -> Self {
        match verdict {
            Ok(()) => Self {
                result: EvidenceResult::Passed,
                message: "as expected".to_owned(),
                source,
            },
            Err(message) => Self {
                result: EvidenceResult::Failed,
                message,
                source,
            },
        }
    }

    pub(super) fn inconclusive(message: impl Into<String>, asked: &str) -> Self {
        let message = message.into();
        let source = format!("{asked}\ncould not look: {message}\n").into_bytes();
        Self {
            result: EvidenceResult::Inconclusive,
            message,
            source,
        }
    }
}

/// Compares two values of the JobSpec; starts nothing.
pub(super) fn value(check: &ValueCheck) -> Sight {
    let source = format!("value: {}\nequals: {}\n", check.value, check.equals).into_bytes();
    Sight::judged(check.judge(), source)
}

/// Runs a command where the check says.
pub(super) async fn command(
    context: &JobContext,
    access: &Access,
    check: &CommandCheck,
    target: Option<&ResourceId>,
) -> Sight {
    let (asked, line, words) = match &check.command {
        Command::Argv(words) => (format!("command: {words:?}"), quote::words(words), words.clone()),
        Command::Line(line) => (
            format!("command line: {line}"),
            line.clone(),
            vec!["/bin/sh".into(), "-c".into(), line.clone()],
        ),
    };
    let seen = match target {
        Some(target) => on_target(context, access, target, &line).await,
        None => here(context, words).await,
    };
    let asked = format!(
        "{}{asked}",
        target.map(|id| format!("target: {id}\n")).unwrap_or_default()
    );
    match seen {
        Ok(seen) => {
            let mut source = format!("{asked}\nexit code: {}\nstdout:\n", seen.code).into_bytes();
            source.extend_from_slice(&seen.stdout);
            source.extend_from_slice(b"\nstderr:\n");
            source.extend_from_slice(&seen.stderr);
            Sight::judged(check.expect.judge(seen.code, &seen.stdout), source)
        }
        Err(why) => Sight::inconclusive(why, &asked),
    }
}

struct Seen {
    code: i32,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

async fn here(context: &JobContext, words: Vec<String>) -> Result<Seen, String> {
    let mut execution = Execution::new(words.into_iter().map(Into::into));
    execution.files = context.secrets.files();
    execution.environment = context.secrets.environment();
    execution.shown = Shown::Kept(KEPT);
    execution.within = Some(PATIENCE);
    if let Some(content) = &context.places.content {
        execution.mounts.push(Mount::read_only(content));
        execution.directory = Some(content.clone());
    }
    let done = context
        .execute(context.slot(), execution)
        .await
        .map_err(|error| error.to_string())?;
    if done.overran {
        return Err(format!("the command took longer than {} s", PATIENCE.as_secs()));
    }
    let code = done
        .ended
        .filter(|_| done.stopped.is_none())
        .ok_or("the job was stopped")?
        .code();
    Ok(Seen {
        code,
        stdout: done.stdout,
        stderr: done.stderr,
    })
}

async fn on_target(context: &JobContext, access: &Access, target: &ResourceId, line: &str) -> Result<Seen, String> {
    let script = wrapper::commands(
        &context.mark(),
        &[Command::Line(line.to_owned())],
        execution_plane_domain::job::ExitRule::All,
        true,
    );
    let remote = Remote {
        target,
        line: wrapper::marked(&context.mark(), &script, &[]),
        pty: false,
        stdin: None,
        shown: Shown::Kept(KEPT),
        within: Some(PATIENCE),
        of_the_job: true,
    };
    let RemoteOutcome { local, end, .. } = context
        .remote(access, remote)
        .await
        .map_err(|error| error.to_string())?;
    let code = match end {
        Some(RemoteEnd::Exited(code)) => code,
        Some(RemoteEnd::Signalled) => return Err("the command was ended by a signal".to_owned()),
        Some(RemoteEnd::Unreachable(why) | RemoteEnd::Broken(why)) => return Err(why),
        None if local.overran => return Err(format!("the command took longer than {} s", PATIENCE.as_secs())),
        None => return Err("the job was stopped".to_owned()),
    };
    Ok(Seen {
        code,
        stdout: local.stdout,
        stderr: local.stderr,
    })
}

/// Reads the end of a file where the check says.
pub(super) async fn log(context: &JobContext, access: &Access, check: &LogCheck, target: Option<&ResourceId>) -> Sight {
    let asked = format!(
        "{}file: {}",
        target.map(|id| format!("target: {id}\n")).unwrap_or_default(),
        check.path
    );
    let tail = match target {
        Some(target) => {
            let line = format!("tail -c {} -- {}", check.tail_bytes, quote::word(&check.path));
            match on_target(context, access, target, &line).await {
                Ok(seen) if seen.code == 0 => Ok(seen.stdout),
                Ok(seen) => Err(String::from_utf8_lossy(&seen.stderr).trim().to_owned()),
                Err(why) => Err(why),
            }
        }
        None => local_tail(context, check),
    };
    match tail {
        Ok(tail) => {
            let source = [format!("{asked}\nlast bytes:\n").as_bytes(), &tail].concat();
            Sight::judged(check.judge(&tail), source)
        }
        Err(why) => Sight::inconclusive(why, &asked),
    }
}

/// Only below the directories that the runner's configuration names: a check must not be a way to
/// read the runner's own files.
fn local_tail(context: &JobContext, check: &LogCheck) -> Result<Vec<u8>, String> {
    use std::io::{Read, Seek, SeekFrom};
    let path = Path::new(&check.path)
        .canonicalize()
        .map_err(|error| error.to_string())?;
    let readable = context
        .tools
        .readable_logs
        .iter()
        .filter_map(|place| place.canonicalize().ok());
    if !readable.into_iter().any(|place| path.starts_with(place)) {
        return Err("this runner's configuration (readable_logs) does not let jobs read there".to_owned());
    }
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(&path)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(check.tail_bytes)))?;
        let mut tail = Vec::new();
        file.take(check.tail_bytes).read_to_end(&mut tail)?;
        Ok(tail)
    };
    read().map_err(|error| error.to_string())
}

/// The targets at which a check looks: none means the runner itself.
pub(super) fn places(access: &Access, target: &CheckTarget) -> Vec<Option<ResourceId>> {
    match target {
        CheckTarget::Runner => vec![None],
        CheckTarget::One(id) => vec![Some(id.clone())],
        CheckTarget::Every => access.ids().cloned().map(Some).collect(),
    }
}
