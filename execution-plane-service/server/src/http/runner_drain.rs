use std::sync::Arc;

use api_kit::{Caller, ETag, IfMatch, Problem, StrictJson, StrictPath, Tell};
use axum::Json;
use axum::extract::State as Shared;
use execution_plane_api::{DrainRequest, Runner};
use kernel::id::{OrganizationId, RunnerId};

use super::{problems, wire};
use crate::core::Core;
use crate::store::runners::{self, Draining, StoredRunner};

/// Stops or resumes giving a runner work; what it has it finishes.
#[utoipa::path(put, path = "/v1/runners/{runner_id}/drain", tag = "runners", params(("runner_id" = RunnerId, Path)),
    request_body = DrainRequest, responses((status = 200, body = Runner)))]
pub async fn drain_runner(
    Shared(core): Shared<Arc<Core>>,
    caller: Caller,
    StrictPath(runner_id): StrictPath<RunnerId>,
    if_match: IfMatch,
    StrictJson(request): StrictJson<DrainRequest>,
) -> Result<(ETag, Json<Runner>), Problem> {
    let hot = &core.hot;
    let organization = caller.organization;
    let mut runner = read(&core, organization, runner_id).await?;
    if_match
        .required()?
        .check(format!("runner {runner_id}"), version(&runner))?;
    if runner.offer.draining != request.draining {
        let change = Draining {
            version: runner.version,
            draining: request.draining,
            fact: caller.act.fact(Tell::accepted().with("draining", request.draining)),
        };
        let set = runners::set_draining(&hot.api, organization, runner_id, change).await;
        let still = set.map_err(problems::store)?;
        runner = read(&core, organization, runner_id).await?;
        if !still {
            return Err(Problem::version_mismatch(
                format!("runner {runner_id}"),
                version(&runner),
            ));
        }
        caller.act.written();
        hot.waiters.changed(organization, runner_id);
    }
    Ok((ETag(version(&runner)), Json(wire::runner(runner))))
}

async fn read(core: &Core, organization: OrganizationId, id: RunnerId) -> Result<StoredRunner, Problem> {
    let lease = core.hot.config.lease.lease.as_seconds_f64();
    let found = runners::get(&core.hot.api, organization, lease, id).await;
    let found = found.map_err(problems::store)?;
    found.ok_or_else(|| Problem::not_found(format_args!("runner {id}")))
}

fn version(runner: &StoredRunner) -> i64 {
    i64::try_from(runner.version).unwrap_or(i64::MAX)
}
