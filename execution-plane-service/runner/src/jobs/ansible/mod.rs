//! A playbook of the content bundle, run by ansible-core on exactly the JobSpec's targets.
//!
//! Invariants: what happened is told by a callback plugin over a descriptor of its own, never read
//! from printed text; the hosts that were executed are the targets that were bound, or the job has
//! failed; parameters are data, never templates; an unreachable host is told from a failed one.

mod events;
mod inventory;
mod yaml;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use contracts::ExitCategory;
use execution_plane_domain::job::AnsibleJob;
use execution_plane_ports::{FileContent, IsolationError, JobFile, Mount};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::unix::pipe::Receiver;

use super::context::{JobContext, Slot};
use super::execute::{Executed, Execution, Shown};
use super::{Job, RemoteProcesses, WorkEnd};
use crate::attempt::told;
use crate::secrets;
use crate::ssh::sweep::{self, AsRoot};
use crate::ssh::{Access, wrapper};
use events::Story;
use inventory::Inventory;

const PLUGIN: &str = include_str!("platform_events.py");
const EVENTS_DESCRIPTOR: i32 = 3;

pub(crate) struct Ansible {
    job: AnsibleJob,
    became: AtomicBool,
}

impl Ansible {
    pub(crate) const fn new(job: AnsibleJob) -> Self {
        Self {
            job,
            became: AtomicBool::new(false),
        }
    }

    fn execution(
        &self,
        context: &JobContext,
        inventory: &Inventory,
        access: &Access,
        slot: &Slot,
        programs: &Path,
        content: &Path,
    ) -> Execution {
        let work = &slot.work;
        let mut execution = Execution::new(self.argv(work, programs));
        let plain = |path: &str, text: String| JobFile {
            path: path.to_owned(),
            content: FileContent::Plain(text.into_bytes()),
            mode: 0o400,
        };
        execution.files = access.files(work, &context.secrets.login_keys(), context.agent_socket());
        execution.files.extend(context.secrets.files());
        execution.files.extend([
            plain("ansible/ansible.cfg", inventory::configuration(work)),
            plain("ansible/inventory.yaml", inventory.file(&context.spec, access)),
            plain(
                "ansible/extra_vars.yaml",
                yaml::write(&self.job.extra_vars.clone().into()),
            ),
            plain("ansible/callbacks/platform_events.py", PLUGIN.to_owned()),
        ]);
        let variable = |name: &str, value: OsString| (OsString::from(name), value);
        execution.environment = [
            variable("ANSIBLE_CONFIG", work.join("ansible/ansible.cfg").into()),
            variable("ANSIBLE_HOME", work.join("ansible").into()),
            variable("PLATFORM_EVENTS_FD", EVENTS_DESCRIPTOR.to_string().into()),
            variable("PLATFORM_TOMBSTONE", wrapper::tombstone(&context.mark()).into()),
            variable("PLATFORM_SECRETS", work.join(secrets::DIRECTORY).into()),
            variable("PLATFORM_ARTIFACTS", context.places.artifacts.clone().into()),
            variable("PATH", search_path(programs)),
        ]
        .into();
        execution.environment.extend(context.secrets.environment());
        if let (Some(socket), Ok(scratch)) = (context.agent_socket(), context.scratch()) {
            execution.environment.insert("SSH_AUTH_SOCK".into(), socket.into());
            execution.mounts.push(Mount::writable(scratch));
        }
        execution.mounts.push(Mount::read_only(content));
        execution.mounts.push(Mount::writable(&context.places.artifacts));
        if let Some(inputs) = &context.places.inputs {
            execution
                .environment
                .insert("PLATFORM_INPUTS".into(), inputs.clone().into());
            execution.mounts.push(Mount::read_only(inputs));
        }
        execution
            .mounts
            .extend(installation(programs).into_iter().map(Mount::read_only));
        execution.directory = Some(content.to_owned());
        execution.shown = Shown::Output { label: None };
        execution.stdin = context.secrets.stdin().map(|value| value.expose().to_vec());
        execution
    }

    fn argv(&self, work: &Path, programs: &Path) -> Vec<OsString> {
        let mut argv: Vec<OsString> = vec![
            programs.join("ansible-playbook").into(),
            "--inventory".into(),
            work.join("ansible/inventory.yaml").into(),
        ];
        if !self.job.extra_vars.is_empty() {
            let mut file = OsString::from("@");
            file.push(work.join("ansible/extra_vars.yaml"));
            argv.extend(["--extra-vars".into(), file]);
        }
        for (option, wanted) in [("--check", self.job.check_mode), ("--diff", self.job.diff)] {
            argv.extend(wanted.then(|| OsString::from(option)));
        }
        for (option, words) in [("--tags", &self.job.tags), ("--skip-tags", &self.job.skip_tags)] {
            if !words.is_empty() {
                argv.extend([option.into(), words.join(",").into()]);
            }
        }
        if let Some(forks) = self.job.forks {
            argv.extend(["--forks".into(), forks.to_string().into()]);
        }
        if self.job.verbosity > 0 {
            argv.push(format!("-{}", "v".repeat(usize::from(self.job.verbosity))).into());
        }
        argv.extend(["--".into(), self.job.playbook.as_str().into()]);
        argv
    }

    async fn play(
        &self,
        context: &JobContext,
        slot: Slot,
        mut execution: Execution,
    ) -> Result<(Executed, Story), IsolationError> {
        let pipes = |source| IsolationError::Start {
            step: "making pipes",
            source,
        };
        let (reader, writer) = std::io::pipe().map_err(pipes)?;
        execution.descriptors.push((writer.into(), EVENTS_DESCRIPTOR));
        let reading = tokio::spawn(read_story(reader.into()));
        let executed = context.execute(slot, execution).await?;
        Ok((executed, reading.await.unwrap_or_default()))
    }

    fn judge(&self, executed: &Executed, story: &Story, inventory: &Inventory) -> WorkEnd {
        let code = executed.code();
        let end = if let Some((host, trouble)) = story.troubled().find(|(_, trouble)| !trouble.unreachable) {
            let message = format!(
                "{}: task {:?} failed: {}",
                name(inventory, host),
                trouble.task,
                trouble.message
            );
            let mut end = WorkEnd::failed(ExitCategory::Unknown, code, message);
            end.ran_through = story.troubled().all(|(_, trouble)| !trouble.unreachable);
            end
        } else if let Some((host, trouble)) = story.troubled().next() {
            let message = format!("{} is unreachable: {}", name(inventory, host), trouble.message);
            WorkEnd::failed(ExitCategory::InfrastructureError, code, message)
        } else if story.garbled > 0 {
            WorkEnd::failed(
                ExitCategory::InfrastructureError,
                code,
                "the events of the run could not be read",
            )
        } else if code != 0 {
            let message = format!("ansible-playbook ended with exit code {code}{}", hint(code));
            let category = if code == 4 || code == 5 {
                ExitCategory::ValidationError
            } else {
                ExitCategory::Unknown
            };
            WorkEnd::failed(category, code, message)
        } else {
            who_ran(story, inventory)
        };
        end.with_output("hosts", story.hosts(inventory))
            .with_output("check_mode", self.job.check_mode.into())
    }
}

/// A run that ended well counts only when it ran on all targets and on nothing else.
fn who_ran(story: &Story, inventory: &Inventory) -> WorkEnd {
    let invalid = |message: String| WorkEnd::failed(ExitCategory::ValidationError, 0, message);
    let missing = story.missing(inventory);
    let foreign = story.foreign(inventory);
    if story.plays == 0 {
        return invalid("the playbook has no play that ran".to_owned());
    }
    if let Some(id) = missing.first() {
        let why = if story.no_hosts_matched {
            " (a play matched no hosts)"
        } else {
            ""
        };
        return invalid(format!(
            "nothing ran on {id} and {} other targets{why}",
            missing.len() - 1
        ));
    }
    if let Some(host) = foreign.first() {
        return invalid(format!("the playbook ran on {host:?}, which is no target of the job"));
    }
    let count = inventory.targets().count();
    WorkEnd::succeeded(format!(
        "the playbook ran on {count} target{}",
        if count == 1 { "" } else { "s" }
    ))
}

fn name(inventory: &Inventory, host: &str) -> String {
    inventory
        .target(host)
        .map_or_else(|| host.to_owned(), ToString::to_string)
}

const fn hint(code: i32) -> &'static str {
    match code {
        4 => " (the playbook or the inventory cannot be read)",
        5 => " (bad options)",
        250 | 1 => " (see the output)",
        _ => "",
    }
}

fn search_path(programs: &Path) -> OsString {
    let mut path = programs.as_os_str().to_owned();
    path.push(":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
    path
}

/// The directories that ansible's interpreter and modules are in, as far as a sandbox does not show
/// them anyway.
fn installation(programs: &Path) -> Vec<PathBuf> {
    let shown = |path: &Path| ["/usr", "/bin", "/lib"].iter().any(|known| path.starts_with(known));
    let mut needed: Vec<PathBuf> = programs.parent().map(Path::to_owned).into_iter().collect();
    if let Ok(interpreter) = programs.join("python3").canonicalize() {
        needed.extend(interpreter.parent().and_then(Path::parent).map(Path::to_owned));
    }
    needed.retain(|path| !shown(path));
    needed.dedup();
    needed
}

async fn read_story(events: OwnedFd) -> Story {
    let mut story = Story::default();
    let Ok(receiver) = Receiver::from_owned_fd(events) else {
        return story;
    };
    let mut lines = BufReader::new(receiver);
    let mut line = Vec::new();
    while let Ok(1..) = lines.read_until(b'\n', &mut line).await {
        // A run that was killed may have written half a line; only whole ones count.
        if line.ends_with(b"\n") {
            story.add(&line);
        }
        line.clear();
    }
    story
}

#[async_trait]
impl Job for Ansible {
    async fn run(&self, context: &JobContext) -> WorkEnd {
        let invalid = |message: String| WorkEnd::failed(ExitCategory::ValidationError, -1, message);
        let Some(programs) = context.tools.ansible.clone() else {
            return WorkEnd::failed(ExitCategory::InfrastructureError, -1, "this runner has no ansible");
        };
        let Some(content) = context.places.content.clone() else {
            return invalid("the job has no content bundle".to_owned());
        };
        let access = match Access::of(&context.spec, true) {
            Ok(access) if access.ids().len() > 0 => access,
            Ok(_) => return invalid("the job has no target".to_owned()),
            Err(faults) => return invalid(told(&faults)),
        };
        if !content.join(self.job.playbook.as_str()).is_file() {
            return invalid(format!(
                "there is no {} in the content bundle",
                self.job.playbook.as_str()
            ));
        }
        let inventory = Inventory::of(&context.spec);
        let slot = context.slot();
        let execution = self.execution(context, &inventory, &access, &slot, &programs, &content);
        for id in access.ids() {
            context.touch(id);
        }
        match self.play(context, slot, execution).await {
            Ok((executed, story)) => {
                self.became.store(story.became, Ordering::SeqCst);
                self.judge(&executed, &story, &inventory)
            }
            Err(error) => WorkEnd::failed(ExitCategory::InfrastructureError, -1, error.to_string()),
        }
    }

    /// What ran through sudo is only seen by root; where root may not look, the answer is "unknown".
    async fn sweep(&self, context: &JobContext) -> RemoteProcesses {
        let as_root = match self.became.load(Ordering::SeqCst) {
            true => AsRoot::Surely,
            false => AsRoot::Perhaps,
        };
        sweep::touched(context, as_root).await
    }
}
