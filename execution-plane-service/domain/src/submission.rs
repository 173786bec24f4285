//! Which submissions are refused, before anything is stored: everything that can be known from the
//! JobSpec itself and from what the organization has uploaded.

use std::collections::BTreeSet;
use std::sync::Arc;

use contracts::{ContentRef, Isolation, JobSpec, JobType};
use kernel::Sha256Digest;
use kernel::id::OrganizationId;

use crate::fault::{Fault, FaultCode};
use crate::job::{self, JobParameters, ParametersError, SshConnection};
use crate::policy::CommandPolicy;
use crate::secrets::SecretRules;

/// Most targets of one job.
pub const MAX_TARGETS: usize = 5_000;
/// Longest time limit: a week.
pub const MAX_TIMEOUT_SECONDS: u32 = 7 * 24 * 3600;
/// Where input artifacts are named.
const ARTIFACT_SCHEME: &str = "artifact://operation/";

/// Why a submission is refused. The variants are told apart on the wire.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the JobSpec breaks {} rules", .0.len())]
    Invalid(Vec<Fault>),
    #[error("{} jobs are not available in this version", .0.as_str())]
    JobTypeNotAvailable(JobType),
    #[error("the content {} was not uploaded", .0.sha256)]
    ContentMissing(ContentRef),
    #[error("the operation has no artifact called {0}")]
    ArtifactMissing(String),
    #[error("there is no command policy {0}")]
    UnknownPolicy(String),
    #[error("{} commands are not allowed by the policy {policy}", .faults.len())]
    CommandNotAllowed { policy: String, faults: Vec<Fault> },
    #[error("no runner of the organization goes by the name {0}")]
    UnknownRunner(String),
}

/// A JobSpec whose form is right. What it refers to is listed, for [`Checked::admit`].
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    pub spec: JobSpec,
    pub parameters: JobParameters,
    /// Names of artifacts of its operation.
    pub input_artifacts: Vec<String>,
    /// The name within `policy/NAME`.
    pub policy: Option<String>,
}

/// What the organization has, as far as the submissions at hand ask.
#[derive(Debug, Clone, Default)]
pub struct Known {
    pub contents: Arc<BTreeSet<Sha256Digest>>,
    /// Names of artifacts of the submission's own operation.
    pub artifacts: BTreeSet<String>,
    /// The newest version of the policy that the submission names.
    pub policy: Option<CommandPolicy>,
    /// Names and pools of the registered runners; empty while none was ever registered.
    pub runner_names: Arc<BTreeSet<String>>,
}

/// Checks the form of `spec`, submitted for `organization`, which may name the secrets that `secrets` allow.
///
/// # Errors
/// [`Refusal::Invalid`] with every fault, or that the job type is not available.
pub fn check(spec: JobSpec, organization: OrganizationId, secrets: &SecretRules) -> Result<Checked, Refusal> {
    let parameters = match JobParameters::of(&spec) {
        Ok(parameters) => Ok(parameters),
        Err(ParametersError::NotAvailable(job_type)) => return Err(Refusal::JobTypeNotAvailable(job_type)),
        Err(ParametersError::Faults(faults)) => Err(faults),
    };
    let mut faults = parameters.as_ref().err().cloned().unwrap_or_default();
    check_frame(&spec, organization, &mut faults);
    check_targets(&spec, parameters.as_ref().ok(), &mut faults);
    let input_artifacts = input_artifacts(&spec, &mut faults);
    let policy = policy_name(&spec, &mut faults);
    check_secrets(&spec, organization, secrets, &mut faults);
    match parameters {
        Ok(parameters) if faults.is_empty() => Ok(Checked {
            spec,
            parameters,
            input_artifacts,
            policy,
        }),
        _ => Err(Refusal::Invalid(faults)),
    }
}

impl Checked {
    /// Checks what the JobSpec refers to.
    ///
    /// # Errors
    /// The first thing that is missing or not allowed.
    pub fn admit(&self, known: &Known) -> Result<(), Refusal> {
        if let Some(content) = &self.spec.content
            && !known.contents.contains(&content.sha256)
        {
            return Err(Refusal::ContentMissing(content.clone()));
        }
        let missing = self
            .input_artifacts
            .iter()
            .find(|name| !known.artifacts.contains(*name));
        if let Some(name) = missing {
            return Err(Refusal::ArtifactMissing(name.clone()));
        }
        if !known.runner_names.is_empty() && !known.runner_names.contains(&self.spec.runner.name) {
            return Err(Refusal::UnknownRunner(self.spec.runner.name.clone()));
        }
        let Some(name) = &self.policy else {
            return Ok(());
        };
        let Some(policy) = &known.policy else {
            return Err(Refusal::UnknownPolicy(name.clone()));
        };
        let faults = policy.violations(&self.parameters.commands());
        if faults.is_empty() {
            return Ok(());
        }
        Err(Refusal::CommandNotAllowed {
            policy: name.clone(),
            faults,
        })
    }
}

fn check_frame(spec: &JobSpec, organization: OrganizationId, faults: &mut Vec<Fault>) {
    if spec.organization_id.is_some_and(|named| named != organization) {
        let detail = "another organization than the caller's";
        faults.push(Fault::new("/organization_id", FaultCode::NotAllowed, detail));
    }
    for (pointer, text) in [
        ("/plan_node_id", &spec.plan_node_id),
        ("/runner/name", &spec.runner.name),
        ("/target/environment", &spec.target.environment),
    ] {
        if text.is_empty() || text.len() > 200 || text.contains(char::is_control) {
            let detail = "1 to 200 bytes without control characters are expected";
            faults.push(Fault::new(pointer, FaultCode::InvalidValue, detail));
        }
    }
    if !(1..=MAX_TIMEOUT_SECONDS).contains(&spec.controls.timeout_seconds) {
        let detail = format!("must be between 1 and {MAX_TIMEOUT_SECONDS}");
        faults.push(Fault::new("/controls/timeout_seconds", FaultCode::InvalidValue, detail));
    }
    if let Err(error) = kernel::canonical::check(&serde_json::to_value(spec).unwrap_or_default()) {
        let (kernel::CanonicalError::NumberTooLarge { pointer } | kernel::CanonicalError::NulInString { pointer }) =
            &error
        else {
            return;
        };
        faults.push(Fault::new(pointer.clone(), FaultCode::InvalidValue, error.to_string()));
    }
}

fn check_targets(spec: &JobSpec, parameters: Option<&JobParameters>, faults: &mut Vec<Fault>) {
    let targets = &spec.target.resources;
    if targets.is_empty() {
        let detail = "a job without targets would succeed at nothing; bind at least one resource";
        faults.push(Fault::new("/target/resources", FaultCode::Required, detail));
    }
    if targets.len() > MAX_TARGETS {
        let detail = format!("at most {MAX_TARGETS} targets");
        faults.push(Fault::new("/target/resources", FaultCode::TooMany, detail));
    }
    let mut seen = BTreeSet::new();
    let logs_in = parameters.is_some_and(JobParameters::logs_in_to_targets);
    for (index, target) in targets.iter().enumerate().take(MAX_TARGETS) {
        let pointer = format!("/target/resources/{index}");
        if !seen.insert(&target.resource_id) {
            let detail = format!("{} is a target twice", target.resource_id);
            faults.push(Fault::new(
                format!("{pointer}/resource_id"),
                FaultCode::Duplicate,
                detail,
            ));
        }
        if logs_in {
            faults.extend(SshConnection::of(target, &pointer).err().unwrap_or_default());
        }
    }
    let Some(parameters) = parameters else { return };
    if parameters.needs_content() && spec.content.is_none() {
        let detail = "the job runs from a content bundle; pin one by its digest";
        faults.push(Fault::new("/content", FaultCode::Required, detail));
    }
    check_check_targets(spec, parameters, faults);
}

/// A check may look only at targets of its own job.
fn check_check_targets(spec: &JobSpec, parameters: &JobParameters, faults: &mut Vec<Fault>) {
    for (index, check) in parameters.checks().iter().enumerate() {
        let job::CheckTarget::One(id) = check.target() else {
            continue;
        };
        let place = spec
            .target
            .resources
            .iter()
            .position(|target| &target.resource_id == id);
        match place {
            None => faults.push(Fault::new(
                format!("{}/checks/{index}/target", job::PARAMETERS),
                FaultCode::Missing,
                format!("{id} is no target of this job"),
            )),
            Some(_) if parameters.logs_in_to_targets() => {}
            Some(place) => {
                let target = &spec.target.resources[place];
                let pointer = format!("/target/resources/{place}");
                faults.extend(SshConnection::of(target, &pointer).err().unwrap_or_default());
            }
        }
    }
}

fn input_artifacts(spec: &JobSpec, faults: &mut Vec<Fault>) -> Vec<String> {
    let mut names = Vec::new();
    for (index, input) in spec.inputs.artifacts.iter().enumerate() {
        match input
            .artifact_ref
            .strip_prefix(ARTIFACT_SCHEME)
            .filter(|name| is_artifact_name(name))
        {
            Some(name) => names.push(name.to_owned()),
            None => faults.push(Fault::new(
                format!("/inputs/artifacts/{index}/artifact_ref"),
                FaultCode::InvalidValue,
                format!("{ARTIFACT_SCHEME}NAME is expected"),
            )),
        }
    }
    names
}

/// An artifact's name becomes part of URIs and file names.
#[must_use]
pub fn is_artifact_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && name.len() <= 200 && !name.starts_with(['.', '-']) && name.bytes().all(plain)
}

/// A command policy's name, as in `policy/NAME`.
#[must_use]
pub fn is_policy_name(name: &str) -> bool {
    is_artifact_name(name)
}

fn policy_name(spec: &JobSpec, faults: &mut Vec<Fault>) -> Option<String> {
    let reference = spec.controls.allowed_commands_ref.as_deref()?;
    let name = reference.strip_prefix("policy/").filter(|name| is_policy_name(name));
    if name.is_none() {
        let detail = "policy/NAME is expected";
        faults.push(Fault::new(
            "/controls/allowed_commands_ref",
            FaultCode::InvalidValue,
            detail,
        ));
    }
    name.map(str::to_owned)
}

fn check_secrets(spec: &JobSpec, organization: OrganizationId, rules: &SecretRules, faults: &mut Vec<Fault>) {
    for (index, secret) in spec.inputs.secrets.iter().enumerate() {
        if !rules.allow(organization, &secret.secret_ref) {
            let detail = format!("the organization may not name {}", secret.secret_ref);
            let pointer = format!("/inputs/secrets/{index}/secret_ref");
            faults.push(Fault::new(pointer, FaultCode::NotAllowed, detail));
        }
        let bad = secret.name.as_deref().is_some_and(|name| !is_artifact_name(name));
        if bad {
            let detail = "a plain file or variable name is expected";
            let pointer = format!("/inputs/secrets/{index}/name");
            faults.push(Fault::new(pointer, FaultCode::InvalidValue, detail));
        }
    }
}

/// The rank of a grade in stores, the weakest first.
#[must_use]
pub const fn isolation_rank(isolation: Isolation) -> i16 {
    match isolation {
        Isolation::Process => 0,
        Isolation::Sandbox => 1,
        Isolation::Container => 2,
    }
}

#[cfg(test)]
mod tests;
