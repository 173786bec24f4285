//! Jobs of a plan.

use std::collections::BTreeMap;

use contracts::{SecretInput, SecretRef};
use control_plane_plan::Job;
use control_plane_scenario::Template;
use control_plane_scenario::dynamic::{Deferred, as_text};
use control_plane_scenario::expression::{EvaluationError, Scope};
use control_plane_scenario::job_types;
use control_plane_scenario::template::{JobTemplate, Targets};
use kernel::id::ResourceUid;
use serde_json::{Map, Value};

use crate::fan_out::Element;
use crate::{Bound, PlanningError};

/// Where a node's action is made.
pub(crate) struct Site<'a, 'c> {
    pub(crate) template: &'a Template,
    pub(crate) bindings: &'a BTreeMap<String, Bound<'c>>,
    pub(crate) node: &'a str,
    pub(crate) element: Option<&'a Element<'c>>,
    pub(crate) scope: &'a Scope<'a>,
}

impl Site<'_, '_> {
    pub(crate) fn failed(&self, error: &EvaluationError) -> PlanningError {
        PlanningError::in_node(self.node, error.to_string())
    }
}

fn targets(job: &JobTemplate, site: &Site<'_, '_>) -> Vec<ResourceUid> {
    match &job.targets {
        Targets::Nothing => Vec::new(),
        Targets::Item => site.element.and_then(|e| e.item.uid).into_iter().collect(),
        Targets::Slots(slots) => {
            let mut uids: Vec<ResourceUid> = Vec::new();
            let bound = slots
                .iter()
                .filter_map(|slot| site.bindings.get(slot))
                .flat_map(|b| &b.candidates);
            for candidate in bound {
                if !uids.contains(&candidate.uid) {
                    uids.push(candidate.uid);
                }
            }
            uids
        }
    }
}

/// Whether the job would act on nothing although it is meant to act on something.
pub(crate) fn acts_on_nothing(job: &JobTemplate, site: &Site<'_, '_>) -> bool {
    job.targets != Targets::Nothing && targets(job, site).is_empty()
}

/// The job. Of a node that is skipped nothing is evaluated: its values may only make sense when it runs.
pub(crate) fn job(job: &JobTemplate, site: &Site<'_, '_>, skipped: bool) -> Result<Job, PlanningError> {
    let mut deferred = Deferred::new();
    let (mut parameters, mut artifacts, mut secrets) = (Map::new(), Vec::new(), Vec::new());
    if !skipped {
        parameters = filled(job, site, &mut deferred)?;
        for artifact in &job.artifacts {
            let value = artifact
                .resolve(site.scope, &mut Deferred::new())
                .map_err(|error| site.failed(&error))?;
            artifacts.push(as_text(&value));
        }
        for secret in &job.secrets {
            let value = secret
                .secret_ref
                .resolve(site.scope, &mut Deferred::new())
                .map_err(|error| site.failed(&error))?;
            let secret_ref: SecretRef = as_text(&value)
                .parse()
                .map_err(|error: contracts::SecretRefError| PlanningError::in_node(site.node, error.to_string()))?;
            secrets.push(SecretInput {
                secret_ref,
                delivery: secret.delivery,
                name: secret.name.clone(),
            });
        }
    }
    let retry = site.template.retry_policies.get(&job.retry).cloned();
    let retry = retry.ok_or_else(|| PlanningError::in_node(site.node, format!("no retry policy `{}`", job.retry)))?;
    Ok(Job {
        job_type: job.job_type,
        runner: job.runner.clone(),
        isolation: job.isolation,
        runner_labels: job.runner_labels.clone(),
        targets: targets(job, site),
        parameters,
        deferred,
        capabilities: job.capabilities.clone(),
        artifacts,
        secrets,
        output_contract: job.output_contract.clone(),
        timeout_seconds: job.timeout_seconds,
        retry,
        allowed_commands_ref: job.allowed_commands_ref.clone(),
        idempotent: job.idempotent,
        mutating: job.mutating,
        with_content: job.with_content,
    })
}

fn filled(
    job: &JobTemplate,
    site: &Site<'_, '_>,
    deferred: &mut Deferred,
) -> Result<Map<String, Value>, PlanningError> {
    let value = job
        .parameters
        .resolve(site.scope, deferred)
        .map_err(|error| site.failed(&error))?;
    let open: Vec<String> = deferred.keys().cloned().collect();
    let faults = job_types::faults_in(job.job_type, &value, &open);
    if !faults.is_empty() {
        return Err(PlanningError::JobParameters {
            node: site.node.to_owned(),
            faults,
        });
    }
    match value {
        Value::Object(parameters) => Ok(parameters),
        other => Err(PlanningError::in_node(site.node, format!("its parameters are {other}"))),
    }
}
