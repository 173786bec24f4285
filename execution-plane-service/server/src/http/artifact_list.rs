use std::sync::Arc;

use api_kit::{Caller, Paging, Problem, StrictPath, StrictQuery};
use axum::Json;
use axum::extract::State as Shared;
use execution_plane_api::ArtifactList;
use kernel::id::{AttemptId, OrganizationId};

use super::queries::ArtifactPage;
use super::{head, problems};
use crate::core::Core;
use crate::store::{artifacts, attempts};

/// Lists the artifacts that an attempt uploaded, by name.
#[utoipa::path(get, path = "/v1/attempts/{attempt_id}/artifacts", tag = "attempts",
    params(("attempt_id" = AttemptId, Path), ArtifactPage), responses((status = 200, body = ArtifactList)))]
pub async fn list_artifacts(
    Shared(core): Shared<Arc<Core>>,
    caller: Caller,
    StrictPath(attempt_id): StrictPath<AttemptId>,
    StrictQuery(query): StrictQuery<ArtifactPage>,
) -> Result<Json<ArtifactList>, Problem> {
    let selects = ("artifacts", caller.organization, attempt_id);
    let paging: Paging<_, String> =
        Paging::begin(selects, query.cursor.as_deref(), query.limit.get(), head(&core)).await?;
    is_there(&core, caller.organization, attempt_id).await?;
    let after = paging.after.as_deref();
    let mut items = artifacts::page(&core.hot.api, caller.organization, attempt_id, after, paging.rows())
        .await
        .map_err(problems::store)?;
    let next_cursor = paging.cut(&mut items, |last| last.name.clone().unwrap_or_default());
    Ok(Json(ArtifactList {
        items,
        next_cursor,
        revision: paging.revision,
    }))
}

/// 404 when there is no such attempt.
pub async fn is_there(core: &Core, organization: OrganizationId, attempt: AttemptId) -> Result<(), Problem> {
    let known = attempts::get(&core.hot.api, organization, attempt).await;
    match known.map_err(problems::store)? {
        Some(_) => Ok(()),
        None => Err(problems::no_attempt(attempt)),
    }
}
