//! What the parameters of a job mean, by job type: `inputs.parameters` of a JobSpec, read once, the
//! same way by the service (at submission) and by the runner (before the start).
//!
//! Invariants: reading is pure and total; every fault is named with its JSON Pointer into the
//! JobSpec; what was read here needs no further checking by the runner.

mod ansible;
mod check;
mod check_kinds;
mod command;
mod connection;
mod content_path;
mod fields;
mod json_path;
mod pattern;
mod ssh;
mod verification;

use contracts::{JobSpec, JobType};

pub use ansible::AnsibleJob;
pub use check::{Check, CheckKind};
pub use check_kinds::{
    ApiCheck, ApiExpectation, CheckTarget, CommandCheck, CommandExpectation, JsonExpectation, LogCheck, TlsExpectation,
    ValueCheck,
};
pub use command::{Command, CommandText, CommandUse};
pub use connection::SshConnection;
pub use content_path::{ContentPath, ContentPathError};
pub use json_path::{JsonPath, JsonPathError};
pub use pattern::{Pattern, PatternError};
pub use ssh::{ExitRule, SshJob, SshWork};
pub use verification::VerificationJob;

use crate::fault::Fault;
use fields::Fields;

/// Where the parameters stand in a JobSpec.
pub const PARAMETERS: &str = "/inputs/parameters";

/// The parameters of a job of a type that this version runs.
#[derive(Debug, Clone, PartialEq)]
pub enum JobParameters {
    Ansible(AnsibleJob),
    Ssh(SshJob),
    Verification(VerificationJob),
}

/// Why parameters could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// The job type is known and not run by this version.
    #[error("{} jobs are not available in this version", .0.as_str())]
    NotAvailable(JobType),
    #[error("the parameters have {} faults", .0.len())]
    Faults(Vec<Fault>),
}

/// Whether this version runs jobs of that type.
#[must_use]
pub const fn is_available(job_type: JobType) -> bool {
    matches!(job_type, JobType::Ansible | JobType::Ssh | JobType::Verification)
}

impl JobParameters {
    /// Reads the parameters of `spec`.
    ///
    /// # Errors
    /// Every fault found, or that the job type is not available.
    pub fn of(spec: &JobSpec) -> Result<Self, ParametersError> {
        let mut fields = Fields::new(&spec.inputs.parameters, PARAMETERS);
        let parameters = match spec.job_type {
            JobType::Ansible => ansible::read(&mut fields).map(Self::Ansible),
            JobType::Ssh => ssh::read(&mut fields).map(Self::Ssh),
            JobType::Verification => verification::read(&mut fields).map(Self::Verification),
            other => return Err(ParametersError::NotAvailable(other)),
        };
        let faults = fields.finish();
        match parameters {
            Some(parameters) if faults.is_empty() => Ok(parameters),
            _ => Err(ParametersError::Faults(faults)),
        }
    }

    /// The checks that the job carries.
    #[must_use]
    pub fn checks(&self) -> &[Check] {
        match self {
            Self::Ansible(job) => &job.checks,
            Self::Ssh(job) => &job.checks,
            Self::Verification(job) => &job.checks,
        }
    }

    /// Every command that the job would run, for its command policy.
    #[must_use]
    pub fn commands(&self) -> Vec<CommandUse> {
        let mut uses = match self {
            Self::Ansible(job) => job.commands(),
            Self::Ssh(job) => job.commands(),
            Self::Verification(_) => Vec::new(),
        };
        uses.extend(self.checks().iter().enumerate().filter_map(check::command_of));
        uses
    }

    /// Whether the job cannot run without a content bundle.
    #[must_use]
    pub fn needs_content(&self) -> bool {
        match self {
            Self::Ansible(_) => true,
            Self::Ssh(job) => matches!(job.work, SshWork::ScriptFile { .. }),
            Self::Verification(_) => false,
        }
    }

    /// Whether the job logs in to every target.
    #[must_use]
    pub fn logs_in_to_targets(&self) -> bool {
        match self {
            Self::Ansible(_) | Self::Ssh(_) => true,
            Self::Verification(job) => job.checks.iter().any(Check::logs_in_to_all),
        }
    }
}
