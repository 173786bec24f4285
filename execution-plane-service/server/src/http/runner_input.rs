use std::sync::Arc;

use api_kit::{Problem, StrictPath, StrictQuery};
use axum::extract::State as Shared;
use axum::response::Response;
use execution_plane_api::RunnerArtifactQuery;
use kernel::id::AttemptId;

use super::runner_content::leased_spec;
use super::runner_identity::RunnerIdentity;
use super::{content_get, problems};
use crate::core::Core;
use crate::store::artifacts;

/// The bytes of an input artifact that the leased attempt's JobSpec names.
#[utoipa::path(get, path = "/v1/runner/attempts/{attempt_id}/inputs/{name}", tag = "runner protocol",
    params(("attempt_id" = AttemptId, Path), ("name" = String, Path), RunnerArtifactQuery),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream")))]
pub async fn fetch_input_artifact(
    Shared(core): Shared<Arc<Core>>,
    runner: RunnerIdentity,
    StrictPath((attempt_id, name)): StrictPath<(AttemptId, String)>,
    StrictQuery(query): StrictQuery<RunnerArtifactQuery>,
) -> Result<Response, Problem> {
    let spec = leased_spec(&core, runner, attempt_id, query.epoch).await?;
    let missing = || Problem::not_found("input artifact of that name");
    let reference = format!("artifact://operation/{name}");
    if !spec
        .inputs
        .artifacts
        .iter()
        .any(|input| input.artifact_ref == reference)
    {
        return Err(missing());
    }
    let found = artifacts::of_operation(&core.hot.api, runner.organization, spec.operation_id, &name).await;
    let artifact = found.map_err(problems::store)?.ok_or_else(missing)?;
    let digest = artifact.sha256.ok_or_else(missing)?;
    content_get::blob(&core, runner.organization, digest).await
}
