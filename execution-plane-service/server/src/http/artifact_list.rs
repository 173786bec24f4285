use std::sync::Arc;

use api_kit::{Caller, Problem, StrictPath};
use axum::Json;
use axum::extract::State as Shared;
use contracts::ArtifactRef;
use execution_plane_api::ArtifactList;
use kernel::id::{AttemptId, OrganizationId};

use super::problems;
use crate::core::Core;
use crate::store::{artifacts, attempts};

/// The artifacts that an attempt uploaded.
#[utoipa::path(get, path = "/v1/attempts/{attempt_id}/artifacts", tag = "attempts",
    params(("attempt_id" = AttemptId, Path)), responses((status = 200, body = ArtifactList)))]
pub async fn list_artifacts(
    Shared(core): Shared<Arc<Core>>,
    caller: Caller,
    StrictPath(attempt_id): StrictPath<AttemptId>,
) -> Result<Json<ArtifactList>, Problem> {
    let items = of_attempt(&core, caller.organization, attempt_id).await?;
    Ok(Json(ArtifactList { items }))
}

/// All artifacts of an attempt that exists.
pub async fn of_attempt(
    core: &Core,
    organization: OrganizationId,
    attempt: AttemptId,
) -> Result<Vec<ArtifactRef>, Problem> {
    let known = attempts::get(&core.hot.api, organization, attempt).await;
    if known.map_err(problems::store)?.is_none() {
        return Err(problems::no_attempt(attempt));
    }
    let found = artifacts::of_attempt(&core.hot.api, organization, attempt).await;
    found.map_err(problems::store)
}
