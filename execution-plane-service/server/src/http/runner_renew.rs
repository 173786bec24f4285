use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api_kit::{Closing, FieldError, Problem, StrictJson};
use axum::Json;
use axum::extract::State as Shared;
use execution_plane_api::{HeldAttempt, LeaseRenewRequest, LeaseRenewResponse, RenewOutcome, RenewedLease};
use kernel::id::AttemptId;
use tokio::time::Instant;

use super::runner_identity::{RunnerIdentity, superseded};
use super::runner_pull::MOST_HELD;
use super::{problems, waiting};
use crate::core::Core;
use crate::dispatch::signals::woken;
use crate::store::renew::{self, Kept};

/// Extends leases at once, then waits for something worth telling.
#[utoipa::path(post, path = "/v1/runner/leases/renew", tag = "runner protocol", request_body = LeaseRenewRequest,
    responses((status = 200, body = LeaseRenewResponse)))]
pub async fn renew_leases(
    Shared(core): Shared<Arc<Core>>,
    runner: RunnerIdentity,
    closing: Closing,
    StrictJson(request): StrictJson<LeaseRenewRequest>,
) -> Result<Json<LeaseRenewResponse>, Problem> {
    if request.held.len() > MOST_HELD {
        let detail = format!("at most {MOST_HELD} attempts");
        return Err(Problem::invalid([FieldError::new("/held", "too_many", detail)]));
    }
    let wait = waiting::wait(request.wait_seconds)?;
    let hot = &core.hot;
    let ids: Vec<AttemptId> = request.held.iter().map(|held| held.attempt_id).collect();
    let mut signal = hot.runners.subscribe((runner.organization, runner.grantee.runner));
    let renewed = renew::renew(&hot.api, &hot.config.lease, runner.organization, runner.grantee, &ids).await;
    let Some(mut kept) = renewed.map_err(problems::store)? else {
        return Err(superseded());
    };
    let lease = hot.config.lease.lease.as_seconds_f64();
    let wait = wait.as_secs_f64().min(lease / 3.0);
    let deadline = Instant::now() + Duration::from_secs_f64(wait);
    loop {
        let leases: Vec<_> = request.held.iter().map(|held| outcome(held, &kept, lease)).collect();
        let is_news = request
            .held
            .iter()
            .zip(&leases)
            .any(|(held, found)| is_news(held, found));
        if is_news || !woken(&mut signal, deadline, &closing).await {
            return Ok(Json(LeaseRenewResponse { leases }));
        }
        let looked = renew::look(&hot.api, runner.organization, runner.grantee, &ids).await;
        kept = looked.map_err(problems::store)?;
    }
}

fn outcome(held: &HeldAttempt, kept: &HashMap<AttemptId, Kept>, lease: f64) -> RenewedLease {
    let own = kept.get(&held.attempt_id).filter(|kept| kept.epoch == held.epoch);
    RenewedLease {
        attempt_id: held.attempt_id,
        epoch: held.epoch,
        outcome: match own {
            None => RenewOutcome::Gone,
            Some(kept) if kept.cancel_requested => RenewOutcome::CancelRequested,
            Some(_) => RenewOutcome::Ok,
        },
        deadline_in_seconds: own.map(|_| lease),
    }
}

fn is_news(held: &HeldAttempt, found: &RenewedLease) -> bool {
    match found.outcome {
        RenewOutcome::Ok => false,
        RenewOutcome::CancelRequested => !held.cancelling,
        RenewOutcome::Gone => true,
    }
}
