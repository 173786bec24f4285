use std::sync::Arc;

use api_kit::{Closing, FieldError, Problem, StrictJson};
use axum::Json;
use axum::extract::State as Shared;
use execution_plane_api::{LeasePullRequest, LeasePullResponse};
use kernel::id::AttemptId;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::time::Instant;

use super::runner_identity::{RunnerIdentity, superseded};
use super::{problems, waiting, wire};
use crate::core::Core;
use crate::dispatch::Handed;
use crate::dispatch::signals::SWEEP;
use crate::store::granted::Granted;
use crate::store::lost::Cause;
use crate::store::pull::{self, Found, Pulled, Puller};

/// Most attempts that a runner may list.
pub const MOST_HELD: usize = 10_000;

/// Waits for leases.
#[utoipa::path(post, path = "/v1/runner/leases/pull", tag = "runner protocol", request_body = LeasePullRequest,
    responses((status = 200, body = LeasePullResponse)))]
pub async fn pull_leases(
    Shared(core): Shared<Arc<Core>>,
    runner: RunnerIdentity,
    closing: Closing,
    StrictJson(request): StrictJson<LeasePullRequest>,
) -> Result<Json<LeasePullResponse>, Problem> {
    if request.held.len() > MOST_HELD {
        let detail = format!("at most {MOST_HELD} attempts");
        return Err(Problem::invalid([FieldError::new("/held", "too_many", detail)]));
    }
    if request.free_slots as usize > MOST_HELD {
        let detail = format!("at most {MOST_HELD} attempts");
        return Err(Problem::invalid([FieldError::new(
            "/free_slots",
            "out_of_range",
            detail,
        )]));
    }
    let wait = waiting::wait(request.wait_seconds)?;
    let held: Vec<(AttemptId, u64)> = request.held.iter().map(|held| (held.attempt_id, held.epoch)).collect();
    let puller = Puller {
        organization: runner.organization,
        grantee: runner.grantee,
        free_slots: request.free_slots,
    };
    let deadline = Instant::now() + wait;
    let hot = &core.hot;
    loop {
        let seen = hot.waiters.queued_so_far(runner.organization);
        let found = look(&core, puller, &held).await?;
        let is_news = !found.leases.is_empty() || !found.gone.is_empty();
        if is_news || Instant::now() >= deadline {
            return Ok(answer(&core, found.leases, found.gone));
        }
        let offer = Arc::new(found.offer);
        let waiting = hot
            .waiters
            .wait(runner.organization, runner.grantee, offer, found.free, seen);
        let Some(mut waiting) = waiting else { continue };
        let sweep = deadline.min(Instant::now() + SWEEP);
        let told = tokio::select! {
            told = &mut waiting.told => told.ok().or(Some(Handed::GaveWay)),
            () = tokio::time::sleep_until(sweep) => None,
            () = closing.closed() => return Ok(answer(&core, Vec::new(), Vec::new())),
        };
        // What was handed over in the very moment of the sweep is in the channel.
        let told = told.unwrap_or_else(|| match waiting.told.try_recv() {
            Ok(handed) => handed,
            Err(TryRecvError::Empty) => Handed::LookAgain,
            Err(TryRecvError::Closed) => Handed::GaveWay,
        });
        match told {
            Handed::Leases(leases) => return Ok(answer(&core, leases, Vec::new())),
            Handed::LookAgain => {}
            Handed::GaveWay => return Ok(answer(&core, Vec::new(), Vec::new())),
        }
    }
}

async fn look(core: &Core, puller: Puller, held: &[(AttemptId, u64)]) -> Result<Found, Problem> {
    let hot = &core.hot;
    let pulled = pull::pull(&hot.api, &hot.config.lease, puller, held).await;
    let found = match pulled.map_err(problems::store)? {
        Pulled::Current(found) => *found,
        Pulled::Superseded => return Err(superseded()),
    };
    let session = puller.grantee.session;
    for attempt in &found.abandoned {
        let cause = Cause::Abandoned { session };
        let declared = hot.declare_lost(&hot.api, puller.organization, *attempt, cause).await;
        declared.map_err(problems::store)?;
    }
    if !found.leases.is_empty() {
        hot.outbox.wake();
    }
    Ok(found)
}

fn answer(core: &Core, leases: Vec<Granted>, gone: Vec<AttemptId>) -> Json<LeasePullResponse> {
    let seconds = core.hot.config.lease.lease.as_seconds_f64();
    Json(LeasePullResponse {
        leases: leases
            .into_iter()
            .map(|granted| wire::lease(granted, seconds))
            .collect(),
        gone,
    })
}
