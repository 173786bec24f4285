//! One remote command on one target.

use std::ffi::OsString;
use std::time::Duration;

use execution_plane_ports::{IsolationError, Mount};
use kernel::ResourceId;

use super::access::{Access, configuration_path};
use super::log::{self, RemoteEnd};
use crate::jobs::context::JobContext;
use crate::jobs::execute::{Executed, Execution, Shown};

/// What to run and how.
pub(crate) struct Remote<'a> {
    pub(crate) target: &'a ResourceId,
    /// For the login shell of the target.
    pub(crate) line: String,
    pub(crate) pty: bool,
    pub(crate) stdin: Option<Vec<u8>>,
    pub(crate) shown: Shown,
    pub(crate) within: Option<Duration>,
    pub(crate) of_the_job: bool,
}

/// What came of it, at the client and on the target.
#[derive(Debug)]
pub(crate) struct RemoteOutcome {
    pub(crate) local: Executed,
    /// None when the client was never started or was ended by us.
    pub(crate) end: Option<RemoteEnd>,
}

impl JobContext {
    /// Runs one remote command with an own client.
    pub(crate) async fn remote(&self, access: &Access, remote: Remote<'_>) -> Result<RemoteOutcome, IsolationError> {
        let shared = |source| IsolationError::Start {
            step: "making the attempt's directory",
            source,
        };
        let scratch = self.scratch().map_err(shared)?.to_owned();
        let slot = self.slot();
        let log_path = scratch.join(format!("{}.log", slot.id));
        let mut argv: Vec<OsString> = vec![self.tools.ssh.clone().into(), "-F".into()];
        argv.push(configuration_path(&slot.work).into());
        argv.extend([
            "-E".into(),
            log_path.clone().into(),
            "-o".into(),
            "LogLevel=DEBUG1".into(),
        ]);
        argv.push(if remote.pty { "-tt" } else { "-T" }.into());
        argv.extend(["--".into(), remote.target.to_string().into(), remote.line.into()]);
        let mut execution = Execution::new(argv);
        let own = access.only(remote.target);
        execution.files = own
            .map(|own| own.files(&slot.work, &self.secrets.login_keys(), self.agent_socket()))
            .unwrap_or_default();
        execution.mounts.push(Mount::writable(scratch));
        execution.stdin = remote.stdin;
        execution.shown = remote.shown;
        execution.within = remote.within;
        execution.of_the_job = remote.of_the_job;
        let local = match self.execute(slot, execution).await {
            Ok(local) => local,
            Err(error) => {
                self.touch(remote.target);
                return Err(error);
            }
        };
        let text = String::from_utf8_lossy(&std::fs::read(&log_path).unwrap_or_default()).into_owned();
        drop(std::fs::remove_file(&log_path));
        let sent = text.contains("debug1: Sending command: ");
        if sent && remote.of_the_job {
            self.touch(remote.target);
        }
        let by_itself = local.stopped.is_none() && !local.overran && local.ended.is_some();
        Ok(RemoteOutcome {
            end: by_itself.then(|| log::read(&text)),
            local,
        })
    }
}
