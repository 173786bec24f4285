//! What a runner is told from outside: where its service is, what it offers, where it may write.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use contracts::{Isolation as Grade, JobType};
use execution_plane_ports::{Isolation, SecretStore};
use identity::BearerToken;
use kernel::id::OrganizationId;
use serde::Deserialize;

/// The configuration of a runner.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `http://HOST:PORT` of execution-plane-service.
    pub service_url: String,
    /// The name that the enrolment token names.
    pub name: String,
    /// Further names that a JobSpec's `runner.name` may ask for.
    #[serde(default)]
    pub pools: Vec<String>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Environments served; empty serves all.
    #[serde(default)]
    pub environments: Vec<String>,
    /// Most attempts at once.
    #[serde(default = "default_capacity")]
    pub capacity: u32,
    /// Survives restarts: what was leased, output not yet sent, content.
    pub state_directory: PathBuf,
    /// On memory (tmpfs); gone with a reboot.
    #[serde(default = "default_runtime_directory")]
    pub runtime_directory: PathBuf,
    /// Where `ansible-playbook` is; without it ansible jobs are not offered.
    #[serde(default)]
    pub ansible_directory: Option<PathBuf>,
    #[serde(default = "default_ssh")]
    pub ssh_program: PathBuf,
    /// Targets of one ssh job at once, when the job does not say.
    #[serde(default = "default_parallel")]
    pub parallel_targets: u16,
    /// Directories whose files log checks without a target may read.
    #[serde(default)]
    pub readable_logs: Vec<PathBuf>,
    /// Which secrets may be named; empty leaves it to the store.
    #[serde(default)]
    pub secret_rules: Vec<SecretRule>,
    /// Between SIGTERM and SIGKILL.
    #[serde(default = "default_stop_grace")]
    pub stop_grace_seconds: f64,
    /// How long a shutdown waits for jobs to end by themselves.
    #[serde(default = "default_drain")]
    pub drain_seconds: f64,
    /// Output beyond it is dropped, and said so.
    #[serde(default = "default_output_limit")]
    pub output_limit_bytes: u64,
    #[serde(default = "default_artifact_limit")]
    pub artifact_limit_bytes: u64,
}

/// Secrets below `prefix` (`vault://MOUNT/PATH`) may be named by `organization`, or, without one, by
/// every organization that has no rule of its own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretRule {
    #[serde(default)]
    pub organization: Option<OrganizationId>,
    pub prefix: String,
}

/// What only the program can name.
#[derive(Clone)]
pub struct Deps {
    /// Good for one enrolment under the configured name.
    pub enrolment_token: BearerToken,
    pub secrets: Arc<dyn SecretStore>,
    /// One for each grade that this runner gives; plain processes only when configured.
    pub isolation: Vec<Arc<dyn Isolation>>,
}

impl Config {
    /// A configuration with defaults for everything that has one.
    #[must_use]
    pub fn new(service_url: impl Into<String>, name: impl Into<String>, state_directory: impl Into<PathBuf>) -> Self {
        Self {
            service_url: service_url.into(),
            name: name.into(),
            pools: Vec::new(),
            labels: BTreeMap::new(),
            environments: Vec::new(),
            capacity: default_capacity(),
            state_directory: state_directory.into(),
            runtime_directory: default_runtime_directory(),
            ansible_directory: None,
            ssh_program: default_ssh(),
            parallel_targets: default_parallel(),
            readable_logs: Vec::new(),
            secret_rules: Vec::new(),
            stop_grace_seconds: default_stop_grace(),
            drain_seconds: default_drain(),
            output_limit_bytes: default_output_limit(),
            artifact_limit_bytes: default_artifact_limit(),
        }
    }

    pub(crate) fn job_types(&self) -> Vec<JobType> {
        let mut types = vec![JobType::Ssh, JobType::Verification];
        if self.ansible_directory.is_some() {
            types.insert(0, JobType::Ansible);
        }
        types
    }

    pub(crate) fn stop_grace(&self) -> Duration {
        Duration::try_from_secs_f64(self.stop_grace_seconds).unwrap_or_default()
    }

    pub(crate) fn drain(&self) -> Duration {
        Duration::try_from_secs_f64(self.drain_seconds).unwrap_or_default()
    }
}

impl Deps {
    pub(crate) fn grades(&self) -> Vec<Grade> {
        let mut grades: Vec<Grade> = self
            .isolation
            .iter()
            .map(|isolation| isolation.report().grade)
            .collect();
        grades.sort_unstable();
        grades.dedup();
        grades
    }

    /// The weakest that is still strong enough.
    pub(crate) fn isolation_of(&self, least: Grade) -> Option<&Arc<dyn Isolation>> {
        self.isolation
            .iter()
            .filter(|isolation| isolation.report().grade >= least)
            .min_by_key(|isolation| isolation.report().grade)
    }
}

const fn default_capacity() -> u32 {
    16
}
fn default_runtime_directory() -> PathBuf {
    PathBuf::from("/dev/shm")
}
fn default_ssh() -> PathBuf {
    PathBuf::from("/usr/bin/ssh")
}
const fn default_parallel() -> u16 {
    32
}
const fn default_stop_grace() -> f64 {
    5.0
}
const fn default_drain() -> f64 {
    20.0
}
const fn default_output_limit() -> u64 {
    256 << 20
}
const fn default_artifact_limit() -> u64 {
    64 << 20
}
