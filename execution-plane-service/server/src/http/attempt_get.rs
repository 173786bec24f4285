use std::sync::Arc;

use api_kit::{Caller, ETag, Problem, StrictPath};
use axum::Json;
use axum::extract::State as Shared;
use execution_plane_api::Attempt;
use execution_plane_domain::attempt::State;
use execution_plane_domain::routing::{Demand, Mismatch};
use kernel::id::{AttemptId, OrganizationId};

use super::{problems, wire};
use crate::core::Core;
use crate::store::{StoreError, attempts, runners};

/// One attempt whole: its JobSpec, where it stands, its result.
#[utoipa::path(get, path = "/v1/attempts/{attempt_id}", tag = "attempts",
    params(("attempt_id" = AttemptId, Path)), responses((status = 200, body = Attempt)))]
pub async fn get_attempt(
    Shared(core): Shared<Arc<Core>>,
    caller: Caller,
    StrictPath(attempt_id): StrictPath<AttemptId>,
) -> Result<(ETag, Json<Attempt>), Problem> {
    let attempt = read(&core, caller.organization, attempt_id).await?;
    let version = i64::try_from(attempt.summary.version).unwrap_or(i64::MAX);
    Ok((ETag(version), Json(attempt)))
}

/// The attempt as callers see it.
pub async fn read(core: &Core, organization: OrganizationId, id: AttemptId) -> Result<Attempt, Problem> {
    let whole = attempts::get(&core.hot.api, organization, id)
        .await
        .map_err(problems::store)?;
    let whole = whole.ok_or_else(|| problems::no_attempt(id))?;
    let waiting_for = if whole.summary.attempt.state == State::Queued {
        let demand = Demand::of(&whole.spec);
        Some(
            waiting_for(core, organization, &demand)
                .await
                .map_err(problems::store)?,
        )
    } else {
        None
    };
    Ok(wire::attempt(whole, waiting_for))
}

/// Why no runner has it yet, for people.
async fn waiting_for(core: &Core, organization: OrganizationId, demand: &Demand) -> Result<String, StoreError> {
    const LOOKED_AT: i64 = 100;
    let lease = core.hot.config.lease.lease.as_seconds_f64();
    let runners = runners::list(&core.hot.api, organization, lease, None, LOOKED_AT).await?;
    let named: Vec<_> = runners
        .iter()
        .filter(|runner| !matches!(runner.offer.admits(demand), Err(Mismatch::Name(_))))
        .collect();
    let able: Vec<_> = named
        .iter()
        .filter(|runner| runner.offer.admits(demand).is_ok())
        .collect();
    if let Some(refusal) = named.first().filter(|_| able.is_empty()) {
        let reason = refusal.offer.admits(demand).err().map(|mismatch| mismatch.to_string());
        return Ok(format!("runner {}: {}", refusal.name, reason.unwrap_or_default()));
    }
    if able.is_empty() {
        return Ok(format!("no runner called {} is registered", demand.name));
    }
    if able.iter().all(|runner| runner.silent) {
        return Ok("the runners that could take it are offline".into());
    }
    Ok("a free place at a runner".into())
}
