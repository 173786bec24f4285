use std::sync::Arc;

use api_kit::{Caller, Problem, StrictPath};
use axum::extract::State as Shared;
use axum::response::Response;
use kernel::id::AttemptId;

use super::{artifact_list, content_get, problems};
use crate::core::Core;
use crate::store::artifacts;

/// The bytes of one artifact of an attempt.
#[utoipa::path(get, path = "/v1/attempts/{attempt_id}/artifacts/{name}", tag = "attempts",
    params(("attempt_id" = AttemptId, Path), ("name" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream")))]
pub async fn get_artifact(
    Shared(core): Shared<Arc<Core>>,
    caller: Caller,
    StrictPath((attempt_id, name)): StrictPath<(AttemptId, String)>,
) -> Result<Response, Problem> {
    artifact_list::is_there(&core, caller.organization, attempt_id).await?;
    let found = artifacts::named(&core.hot.api, caller.organization, attempt_id, &name).await;
    let digest = found
        .map_err(problems::store)?
        .and_then(|artifact| artifact.sha256)
        .ok_or_else(|| Problem::not_found("artifact of that name"))?;
    content_get::blob(&core, caller.organization, digest).await
}
