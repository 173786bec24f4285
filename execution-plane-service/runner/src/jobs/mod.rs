//! The job types. Each knows how to do its work on the targets and how to end what it left there;
//! everything else (content, secrets, policy, checks, artifacts, result) is the same for all.
//!
//! To add one: its parameters in the domain's `JobParameters`, a module here with a [`Job`], a line in
//! [`of`], and its name among the job types that the runner offers.

pub(crate) mod ansible;
mod api_probe;
pub(crate) mod checks;
pub(crate) mod context;
pub(crate) mod execute;
pub(crate) mod https;
mod probes;
pub(crate) mod ssh;
mod ssh_artifacts;
pub(crate) mod verification;

use async_trait::async_trait;
use contracts::{ExecutionStatus, ExitCategory};
use execution_plane_domain::job::JobParameters;
use serde_json::{Map, Value};

use crate::ssh::sweep::{self, AsRoot};
use context::JobContext;

/// What became of a job's own work. Nothing in here comes from what the job printed, but texts that
/// are marked as such by their place (`message`, `outputs`).
#[derive(Debug, Clone)]
pub(crate) struct WorkEnd {
    pub(crate) status: ExecutionStatus,
    pub(crate) code: i32,
    pub(crate) category: ExitCategory,
    pub(crate) message: String,
    pub(crate) outputs: Map<String, Value>,
    /// The job ran to an end of its own, so evidence may overrule a bad exit code.
    pub(crate) ran_through: bool,
    /// Contact was lost while something ran on a target; it may run on.
    pub(crate) adrift: bool,
}

impl WorkEnd {
    pub(crate) fn succeeded(message: impl Into<String>) -> Self {
        Self {
            status: ExecutionStatus::Succeeded,
            code: 0,
            category: ExitCategory::Success,
            message: message.into(),
            outputs: Map::new(),
            ran_through: true,
            adrift: false,
        }
    }

    pub(crate) fn failed(category: ExitCategory, code: i32, message: impl Into<String>) -> Self {
        Self {
            status: ExecutionStatus::Failed,
            code,
            category,
            message: message.into(),
            outputs: Map::new(),
            ran_through: false,
            adrift: false,
        }
    }

    pub(crate) fn with_output(mut self, name: &str, value: Value) -> Self {
        self.outputs.insert(name.to_owned(), value);
        self
    }
}

/// Whether anything of an attempt may still run on its targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RemoteProcesses {
    /// The job starts nothing elsewhere.
    None,
    /// Looked everywhere; nothing carries the attempt's mark.
    Ended,
    /// Could not be told for these targets, and why.
    Unknown(Vec<String>),
}

/// One kind of job.
#[async_trait]
pub(crate) trait Job: Send + Sync {
    /// Does the work. Returns early, after ending its local processes, when the context's stop is
    /// asked for; what it returns then is the real result as far as it got.
    async fn run(&self, context: &JobContext) -> WorkEnd;

    /// Ends what the attempt started on the targets that it touched.
    async fn sweep(&self, context: &JobContext) -> RemoteProcesses {
        sweep::touched(context, AsRoot::Perhaps).await
    }
}

/// The job behind `parameters`.
pub(crate) fn of(parameters: JobParameters) -> Box<dyn Job> {
    match parameters {
        JobParameters::Ansible(job) => Box::new(ansible::Ansible::new(job)),
        JobParameters::Ssh(job) => Box::new(ssh::Ssh::new(job)),
        JobParameters::Verification(job) => Box::new(verification::Verification::new(job)),
    }
}
