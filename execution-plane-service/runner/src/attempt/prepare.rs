//! Everything that must be true before a job may begin. What is not refuses the attempt; nothing of
//! it has run then, and the report says so.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use client_kit::ClientError;
use contracts::{ExitCategory, JobSpec};
use execution_plane_api::Lease;
use execution_plane_domain::job::{JobParameters, ParametersError};
use execution_plane_domain::policy::CommandPolicy;
use execution_plane_ports::{Isolation, isolation::grade_word};
use futures::{Stream, TryStreamExt};

use super::active::Active;
use super::told;
use crate::content;
use crate::jobs::context::JobContext;
use crate::output::OutputSink;
use crate::runner::Runner;
use crate::secrets::Secrets;
use crate::state::Home;

/// Why a job does not begin.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) category: ExitCategory,
    pub(crate) message: String,
}

impl Refusal {
    fn new(category: ExitCategory, message: impl Into<String>) -> Self {
        Self {
            category,
            message: message.into(),
        }
    }

    fn infrastructure(message: impl Into<String>) -> Self {
        Self::new(ExitCategory::InfrastructureError, message)
    }

    fn invalid(message: impl Into<String>) -> Self {
        Self::new(ExitCategory::ValidationError, message)
    }
}

const INPUT_SCHEME: &str = "artifact://operation/";

/// Reads the parameters and checks the command policy.
pub(crate) fn admit(lease: &Lease) -> Result<JobParameters, Refusal> {
    let parameters = JobParameters::of(&lease.job).map_err(|error| match error {
        ParametersError::Faults(faults) => Refusal::invalid(told(&faults)),
        other @ ParametersError::NotAvailable(_) => Refusal::invalid(other.to_string()),
    })?;
    let Some(wanted) = &lease.job.controls.allowed_commands_ref else {
        return Ok(parameters);
    };
    let policy_error = |message: String| Refusal::new(ExitCategory::PolicyError, message);
    let Some(policy) = &lease.command_policy else {
        return Err(policy_error(format!(
            "{wanted} did not come with the lease; nothing runs without it"
        )));
    };
    let body = serde_json::to_value(&policy.body).unwrap_or_default();
    let rules = CommandPolicy::parse(&body).map_err(|faults| policy_error(told(&faults)))?;
    let violations = rules.violations(&parameters.commands());
    if violations.is_empty() {
        return Ok(parameters);
    }
    Err(policy_error(format!(
        "{wanted} (version {}) does not allow: {}",
        policy.version,
        told(&violations)
    )))
}

/// The weakest isolation of this runner that is strong enough.
pub(crate) fn isolation(runner: &Runner, spec: &JobSpec) -> Result<Arc<dyn Isolation>, Refusal> {
    let least = spec.runner.isolation;
    runner.deps.isolation_of(least).cloned().ok_or_else(|| {
        let given: Vec<_> = runner.deps.grades().into_iter().map(grade_word).collect();
        let asked = grade_word(least);
        Refusal::infrastructure(format!(
            "isolation {asked} was asked for; this runner gives {}",
            given.join(", ")
        ))
    })
}

/// Fetches content and inputs, resolves secrets.
pub(crate) async fn context(
    runner: &Runner,
    active: &Active,
    lease: &Lease,
    isolation: Arc<dyn Isolation>,
    home: &Home,
    output: OutputSink,
) -> Result<JobContext, Refusal> {
    let broken = |error: std::io::Error| Refusal::infrastructure(format!("the state directory: {error}"));
    let content = fetch_content(runner, lease).await?;
    let inputs = fetch_inputs(runner, lease, home).await?;
    failpoints::hit("runner.secrets.before");
    let secrets = Secrets::resolve(&lease.job, runner.deps.secrets.as_ref(), &runner.config.secret_rules)
        .await
        .map_err(|error| Refusal::new(error.category(), error.to_string()))?;
    failpoints::hit("runner.secrets.resolved");
    let artifacts = home.directory("artifacts").map_err(broken)?;
    Ok(JobContext::new(
        Arc::new(lease.job.clone()),
        Arc::clone(&runner.tools),
        isolation,
        secrets,
        crate::jobs::context::Places {
            content,
            inputs,
            artifacts,
        },
        output,
        active.stop.clone(),
        active.begun.clone(),
    ))
}

async fn fetch_content(runner: &Runner, lease: &Lease) -> Result<Option<PathBuf>, Refusal> {
    let Some(wanted) = &lease.job.content else {
        return Ok(None);
    };
    let root = runner.state.content();
    if let Some(place) = content::unpacked(&root, &wanted.sha256) {
        return Ok(Some(place));
    }
    failpoints::hit("runner.content.before");
    let bytes = fetch(runner, lease, None)
        .await
        .map_err(|error| Refusal::infrastructure(format!("the content bundle cannot be fetched: {error}")))?;
    failpoints::hit("runner.content.fetched");
    let pinned = wanted.sha256;
    let unpacked = tokio::task::spawn_blocking(move || content::unpack(&root, &pinned, &bytes)).await;
    match unpacked {
        Ok(Ok(place)) => {
            failpoints::hit("runner.content.unpacked");
            Ok(Some(place))
        }
        Ok(Err(error @ content::ContentError::Io(_))) => Err(Refusal::infrastructure(error.to_string())),
        Ok(Err(error)) => Err(Refusal::invalid(error.to_string())),
        Err(error) => Err(Refusal::infrastructure(error.to_string())),
    }
}

async fn fetch_inputs(runner: &Runner, lease: &Lease, home: &Home) -> Result<Option<PathBuf>, Refusal> {
    if lease.job.inputs.artifacts.is_empty() {
        return Ok(None);
    }
    let broken = |error: std::io::Error| Refusal::infrastructure(format!("the state directory: {error}"));
    let directory = home.directory("inputs").map_err(broken)?;
    for input in &lease.job.inputs.artifacts {
        let name = input.artifact_ref.strip_prefix(INPUT_SCHEME).unwrap_or_default();
        if name.is_empty() || name.contains('/') || name.starts_with('.') {
            return Err(Refusal::invalid(format!(
                "{:?} names no artifact of the operation",
                input.artifact_ref
            )));
        }
        failpoints::hit("runner.input.before");
        let bytes = fetch(runner, lease, Some(name))
            .await
            .map_err(|error| Refusal::infrastructure(format!("the input {name} cannot be fetched: {error}")))?;
        std::fs::write(directory.join(name), bytes).map_err(broken)?;
        failpoints::hit("runner.input.written");
    }
    Ok(Some(directory))
}

/// The bundle, or the input of that name. A body that breaks off is fetched again from its start.
async fn fetch(runner: &Runner, lease: &Lease, input: Option<&str>) -> Result<Vec<u8>, FetchError> {
    let mut failed = 0;
    loop {
        let fetched = match input {
            None => whole(runner.client.content(lease.attempt_id, lease.epoch).await?).await,
            Some(name) => {
                whole(
                    runner
                        .client
                        .input_artifact(lease.attempt_id, lease.epoch, name)
                        .await?,
                )
                .await
            }
        };
        match fetched {
            Err(FetchError::Broken(_)) if failed < 3 => failed += 1,
            done => return done,
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error(transparent)]
    Refused(#[from] ClientError),
    #[error("it broke off: {0}")]
    Broken(#[from] std::io::Error),
}

async fn whole(pieces: impl Stream<Item = std::io::Result<Bytes>>) -> Result<Vec<u8>, FetchError> {
    let mut all = Vec::new();
    futures::pin_mut!(pieces);
    while let Some(piece) = pieces.try_next().await? {
        all.extend_from_slice(&piece);
    }
    Ok(all)
}
