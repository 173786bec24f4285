use std::sync::Arc;

use api_kit::{Problem, StrictPath, StrictQuery};
use axum::extract::State as Shared;
use axum::response::Response;
use contracts::JobSpec;
use execution_plane_api::RunnerArtifactQuery;
use kernel::id::AttemptId;

use super::runner_identity::RunnerIdentity;
use super::{content_get, problems};
use crate::core::Core;
use crate::store::{attempts, report};

/// The content bundle of a leased attempt.
#[utoipa::path(get, path = "/v1/runner/attempts/{attempt_id}/content", tag = "runner protocol",
    params(("attempt_id" = AttemptId, Path), RunnerArtifactQuery),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream")))]
pub async fn fetch_content(
    Shared(core): Shared<Arc<Core>>,
    runner: RunnerIdentity,
    StrictPath(attempt_id): StrictPath<AttemptId>,
    StrictQuery(query): StrictQuery<RunnerArtifactQuery>,
) -> Result<Response, Problem> {
    let spec = leased_spec(&core, runner, attempt_id, query.epoch).await?;
    let content = spec
        .content
        .ok_or_else(|| Problem::not_found("content of this attempt"))?;
    content_get::blob(&core, runner.organization, content.sha256).await
}

/// The JobSpec of an attempt that the runner has.
pub async fn leased_spec(
    core: &Core,
    runner: RunnerIdentity,
    attempt: AttemptId,
    epoch: u64,
) -> Result<JobSpec, Problem> {
    let hot = &core.hot;
    let fence = report::check(&hot.api, runner.reporter(attempt, epoch))
        .await
        .map_err(problems::store)?;
    fence.map_err(|fenced| problems::fenced(fenced, attempt))?;
    let whole = attempts::get(&hot.api, runner.organization, attempt)
        .await
        .map_err(problems::store)?;
    Ok(whole.ok_or_else(|| problems::no_attempt(attempt))?.spec)
}
