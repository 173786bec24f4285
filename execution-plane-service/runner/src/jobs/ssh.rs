//! Commands or a script on every target, in parallel, each with a result of its own.

use async_trait::async_trait;
use contracts::ExitCategory;
use execution_plane_domain::job::{Command, SshJob, SshWork};
use futures::StreamExt;
use kernel::ResourceId;
use serde_json::{Map, Value, json};

use super::context::JobContext;
use super::execute::Shown;
use super::{Job, RemoteProcesses, WorkEnd, ssh_artifacts};
use crate::attempt::told;
use crate::ssh::client::{Remote, RemoteOutcome};
use crate::ssh::log::RemoteEnd;
use crate::ssh::sweep::{self, AsRoot};
use crate::ssh::{Access, wrapper};

/// A script sent as an argument must fit into what kernels take as one.
const LONGEST_LINE: usize = 100 * 1024;

pub(crate) struct Ssh {
    job: SshJob,
}

/// A script and its arguments.
struct Script {
    text: Vec<u8>,
    arguments: Vec<String>,
}

/// Whether a text names a program by which one becomes root. Where it only speaks of it, too much is asked of
/// the sweep, never too little.
fn becomes_root(text: &str) -> bool {
    let mut words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'));
    words.any(|word| matches!(word, "sudo" | "su" | "doas" | "pkexec" | "runuser"))
}

/// The end of one target.
struct TargetEnd {
    id: ResourceId,
    /// `ok`, `failed`, `unreachable`, `unknown`, `stopped`, `not_run`.
    status: &'static str,
    code: Option<i32>,
    signal: Option<i32>,
    message: String,
}

impl Ssh {
    pub(crate) const fn new(job: SshJob) -> Self {
        Self { job }
    }

    /// What a script is, or nothing when there are commands.
    fn script(&self, context: &JobContext) -> Result<Option<Script>, String> {
        match &self.job.work {
            SshWork::Commands(_) => Ok(None),
            SshWork::Script { text, arguments } => Ok(Some(Script {
                text: text.clone().into_bytes(),
                arguments: arguments.clone(),
            })),
            SshWork::ScriptFile { path, arguments } => {
                let content = context.places.content.as_ref().ok_or("the job has no content bundle")?;
                let text = std::fs::read(content.join(path.as_str()))
                    .map_err(|error| format!("{} in the content bundle: {error}", path.as_str()))?;
                Ok(Some(Script {
                    text,
                    arguments: arguments.clone(),
                }))
            }
        }
    }

    /// What the commands say about becoming root. A script that cannot be read any more may have said anything.
    fn as_root(&self, context: &JobContext) -> AsRoot {
        let said = match &self.job.work {
            SshWork::Commands(list) => list.iter().any(|command| match command {
                Command::Argv(words) => words.iter().any(|word| becomes_root(word)),
                Command::Line(line) => becomes_root(line),
            }),
            SshWork::Script { .. } | SshWork::ScriptFile { .. } => match self.script(context) {
                Ok(Some(script)) => {
                    let words = script.arguments.iter().any(|word| becomes_root(word));
                    words || becomes_root(&String::from_utf8_lossy(&script.text))
                }
                Ok(None) => false,
                Err(_) => true,
            },
        };
        if said { AsRoot::Surely } else { AsRoot::Perhaps }
    }

    async fn on_target(
        &self,
        context: &JobContext,
        access: &Access,
        id: &ResourceId,
        script: Option<&Script>,
    ) -> TargetEnd {
        let mark = context.mark();
        let label = (access.ids().len() > 1).then(|| id.to_string());
        let shown = Shown::Output { label };
        let remote = |script: &str, arguments: &[String], pty, stdin| Remote {
            target: id,
            line: wrapper::marked(&mark, script, arguments),
            pty,
            stdin,
            shown: shown.clone(),
            within: None,
            of_the_job: true,
        };
        let stdin = context.secrets.stdin().map(|value| value.expose().to_vec());
        let last = match (&self.job.work, script) {
            (SshWork::Commands(list), _) => {
                let script = wrapper::commands(&mark, list, self.job.exit_rule, self.job.stop_on_failure);
                if script.len() > LONGEST_LINE {
                    return TargetEnd::new(id, "not_run", "the commands are too long for one line; use a script");
                }
                remote(&script, &[], self.job.pty, stdin)
            }
            (_, Some(Script { text, arguments })) => {
                let text = wrapper::with_interpreter(text);
                let receive = remote(&wrapper::receive_script(&mark), &[], false, Some(text));
                let received = self.run(context, access, id, receive).await;
                if received.status != "ok" {
                    return received;
                }
                remote(&wrapper::run_script(&mark), arguments, self.job.pty, stdin)
            }
            (_, None) => return TargetEnd::new(id, "not_run", "there is no script"),
        };
        self.run(context, access, id, last).await
    }

    async fn run(&self, context: &JobContext, access: &Access, id: &ResourceId, remote: Remote<'_>) -> TargetEnd {
        match context.remote(access, remote).await {
            Ok(outcome) => TargetEnd::of(id, &outcome),
            Err(error) => TargetEnd::new(id, "unreachable", &error.to_string()),
        }
    }
}

impl TargetEnd {
    fn new(id: &ResourceId, status: &'static str, message: &str) -> Self {
        Self {
            id: id.clone(),
            status,
            code: None,
            signal: None,
            message: message.to_owned(),
        }
    }

    fn of(id: &ResourceId, outcome: &RemoteOutcome) -> Self {
        let mut end = match &outcome.end {
            None if outcome.local.ended.is_none() => Self::new(id, "not_run", "the job was stopped before"),
            None => Self::new(id, "stopped", "ended by the runner"),
            Some(RemoteEnd::Exited(0)) => Self::new(id, "ok", ""),
            Some(RemoteEnd::Exited(code)) => Self::new(id, "failed", &format!("exit code {code}")),
            Some(RemoteEnd::Signalled) => Self::new(id, "failed", "ended by a signal"),
            Some(RemoteEnd::Unreachable(why)) => Self::new(id, "unreachable", why),
            Some(RemoteEnd::Broken(why)) => Self::new(
                id,
                "unknown",
                &format!("the connection broke while the command ran: {why}"),
            ),
        };
        if let Some(RemoteEnd::Exited(code)) = outcome.end {
            end.code = Some(code);
            end.signal = (129..=192).contains(&code).then(|| code - 128);
            if let Some(signal) = end.signal {
                end.message = format!("exit code {code} (signal {signal})");
            }
        }
        end
    }

    fn json(&self) -> Value {
        json!({"status": self.status, "exit_code": self.code, "signal": self.signal, "message": self.message})
    }
}

fn summary(ends: &[TargetEnd]) -> WorkEnd {
    let count = |status: &str| ends.iter().filter(|end| end.status == status).count();
    let first = |status: &str| ends.iter().find(|end| end.status == status);
    let of = ends.len();
    let told = |end: &TargetEnd, number: usize| {
        let rest = if of > 1 {
            format!(" ({number} of {of} targets)")
        } else {
            String::new()
        };
        format!("{}: {}{rest}", end.id, end.message)
    };
    let mut work = if let Some(end) = first("unknown") {
        let mut work = WorkEnd::failed(ExitCategory::InfrastructureError, -1, told(end, count("unknown")));
        work.adrift = true;
        work
    } else if let Some(end) = first("failed") {
        let mut work = WorkEnd::failed(
            ExitCategory::Unknown,
            end.code.unwrap_or(-1),
            told(end, count("failed")),
        );
        work.ran_through = count("ok") + count("failed") == of;
        work
    } else if let Some(end) = first("unreachable") {
        WorkEnd::failed(ExitCategory::InfrastructureError, -1, told(end, count("unreachable")))
    } else if let Some(end) = first("stopped").or_else(|| first("not_run")) {
        WorkEnd::failed(ExitCategory::Unknown, -1, told(end, count(end.status)))
    } else {
        WorkEnd::succeeded(format!("ran on {of} target{}", if of == 1 { "" } else { "s" }))
    };
    let targets: Map<String, Value> = ends.iter().map(|end| (end.id.to_string(), end.json())).collect();
    work.outputs.insert("targets".to_owned(), Value::Object(targets));
    work
}

#[async_trait]
impl Job for Ssh {
    async fn run(&self, context: &JobContext) -> WorkEnd {
        let invalid = |message: String| WorkEnd::failed(ExitCategory::ValidationError, -1, message);
        let access = match Access::of(&context.spec, true) {
            Ok(access) if access.ids().len() > 0 => access,
            Ok(_) => return invalid("the job has no target".to_owned()),
            Err(faults) => return invalid(told(&faults)),
        };
        let script = match self.script(context) {
            Ok(script) => script,
            Err(message) => return invalid(message),
        };
        let parallel = self.job.parallel.unwrap_or(context.tools.parallel_targets);
        let targets: Vec<_> = access
            .ids()
            .map(|id| self.on_target(context, &access, id, script.as_ref()))
            .collect();
        let mut ends: Vec<TargetEnd> = futures::stream::iter(targets)
            .buffer_unordered(usize::from(parallel))
            .collect()
            .await;
        ends.sort_by(|a, b| a.id.cmp(&b.id));
        for end in ends.iter().filter(|end| end.status != "ok") {
            context.output.say(&format!(
                "{}: {}: {}",
                end.id,
                end.status,
                context.secrets.masks().mask_text(&end.message)
            ));
        }
        let work = summary(&ends);
        if context.spec.output_contract.artifacts.is_empty() || context.stop.cause().is_some() {
            return work;
        }
        ssh_artifacts::fetch(context, &access, work).await
    }

    async fn sweep(&self, context: &JobContext) -> RemoteProcesses {
        sweep::touched(context, self.as_root(context)).await
    }
}

#[cfg(test)]
mod tests {
    use super::becomes_root;

    #[test]
    fn a_command_that_may_become_root_is_told_from_one_that_does_not() {
        for text in [
            "sudo -n systemctl stop x",
            "/usr/bin/sudo id",
            "true; su - db -c x",
            "x && doas y",
        ] {
            assert!(becomes_root(text), "{text}");
        }
        for text in [
            "systemctl --user stop x",
            "cat /etc/sudoers",
            "sum 1 2",
            "pseudo sudoku",
        ] {
            assert!(!becomes_root(text), "{text}");
        }
    }
}
