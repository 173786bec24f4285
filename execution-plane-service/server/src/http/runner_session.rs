use std::sync::Arc;

use api_kit::{Caller, FieldError, Problem, StrictJson, internal_problem};
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use chrono::Utc;
use execution_plane_api::{RunnerRegistration, RunnerSession, SessionRequest};
use identity::Role;
use kernel::id::RunnerId;

use super::problems;
use super::runner_identity::{RunnerIdentity, superseded};
use crate::core::Core;
use crate::store::runners::{self, Registration};

/// Registers a runner and opens a session. With an enrolment token (subject `enrolment:NAME`), or
/// with a token of the runner's newest session. The same instance keeps its session.
#[utoipa::path(post, path = "/v1/runner/sessions", tag = "runner protocol", request_body = SessionRequest,
    responses((status = 201, body = RunnerSession)))]
pub async fn open_session(
    Shared(core): Shared<Arc<Core>>,
    caller: Caller,
    StrictJson(request): StrictJson<SessionRequest>,
) -> Result<(StatusCode, Json<RunnerSession>), Problem> {
    let SessionRequest { instance, registration } = request;
    check(&registration)?;
    may_be(&core, &caller, &registration.name).await?;
    let hot = &core.hot;
    let labels = serde_json::to_value(&registration.labels).map_err(|error| internal_problem(&error))?;
    let registration = Registration {
        name: registration.name,
        pools: registration.pools,
        labels,
        job_types: registration.job_types,
        isolation: registration.isolation,
        capacity: registration.capacity,
        environments: registration.environments,
        software_version: registration.version,
    };
    let opened = runners::open_session(
        &hot.api,
        caller.organization,
        RunnerId::new_v7(),
        instance,
        &registration,
        &caller.act,
    )
    .await;
    let (runner_id, session) = opened.map_err(problems::store)?;
    hot.waiters.changed(caller.organization, runner_id);
    hot.runners.notify(&(caller.organization, runner_id));
    let subject = RunnerIdentity::subject(runner_id, session);
    let (lifetime, now) = (hot.config.runner_token, Utc::now());
    let token = core
        .minter
        .mint(&subject, caller.organization, [Role::Runner], lifetime, now)
        .map_err(|error| internal_problem(&error))?;
    let opened = RunnerSession {
        runner_id,
        session,
        token: token.expose().to_owned(),
        expires_at: now + lifetime,
        valid_seconds: Some(lifetime.as_seconds_f64()),
        lease_seconds: hot.config.lease.lease.as_seconds_f64(),
        grace_seconds: hot.config.lease.grace.as_seconds_f64(),
    };
    Ok((StatusCode::CREATED, Json(opened)))
}

/// Whether the caller may be the runner of that name.
async fn may_be(core: &Core, caller: &Caller, name: &str) -> Result<(), Problem> {
    if caller.subject.strip_prefix("enrolment:") == Some(name) {
        return Ok(());
    }
    let Some(runner) = RunnerIdentity::of(caller) else {
        let detail = "The token enrols no runner of this name.";
        return Err(Problem::forbidden(detail).remedy("Ask for an enrolment token with the subject enrolment:NAME."));
    };
    let known = runners::identity(&core.hot.api, runner.organization, runner.grantee.runner).await;
    match known.map_err(problems::store)? {
        Some((own, session)) if session == runner.grantee.session && own == name => Ok(()),
        Some((own, _)) if own != name => Err(Problem::forbidden("The token is another runner's.")),
        _ => Err(superseded()),
    }
}

fn check(registration: &RunnerRegistration) -> Result<(), Problem> {
    let mut errors = Vec::new();
    let mut refuse = |pointer: &str, detail: &str| {
        errors.push(FieldError::new(
            format!("/registration{pointer}"),
            "invalid_value",
            detail,
        ))
    };
    let is_name = |name: &String| !name.is_empty() && name.len() <= 200 && !name.contains(char::is_control);
    if !is_name(&registration.name) {
        refuse("/name", "1 to 200 bytes without control characters");
    }
    if registration.pools.len() > 64 || !registration.pools.iter().all(is_name) {
        refuse("/pools", "at most 64 names of 1 to 200 bytes");
    }
    if registration.environments.len() > 64 || !registration.environments.iter().all(is_name) {
        refuse("/environments", "at most 64 names of 1 to 200 bytes");
    }
    let labels_fit = registration
        .labels
        .iter()
        .all(|(key, value)| is_name(key) && value.len() <= 200);
    if registration.labels.len() > 64 || !labels_fit {
        refuse("/labels", "at most 64 labels of at most 200 bytes each");
    }
    if registration.job_types.is_empty() {
        refuse("/job_types", "at least one job type");
    }
    if registration.isolation.is_empty() {
        refuse("/isolation", "at least one grade");
    }
    if !(1..=10_000).contains(&registration.capacity) {
        refuse("/capacity", "1 to 10000");
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Problem::invalid(errors))
    }
}
