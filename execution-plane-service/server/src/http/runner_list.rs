use std::sync::Arc;

use api_kit::{Caller, Paging, Problem, StrictQuery};
use axum::Json;
use axum::extract::State as Shared;
use execution_plane_api::RunnerList;
use kernel::id::RunnerId;

use super::queries::RunnerPage;
use super::{head, problems, wire};
use crate::core::Core;
use crate::store::runners;

/// Lists the registered runners.
#[utoipa::path(get, path = "/v1/runners", tag = "runners", params(RunnerPage),
    responses((status = 200, body = RunnerList)))]
pub async fn list_runners(
    Shared(core): Shared<Arc<Core>>,
    caller: Caller,
    StrictQuery(query): StrictQuery<RunnerPage>,
) -> Result<Json<RunnerList>, Problem> {
    let selects = ("runners", caller.organization);
    let paging: Paging<_, RunnerId> =
        Paging::begin(selects, query.cursor.as_deref(), query.limit.get(), head(&core)).await?;
    let lease = core.hot.config.lease.lease.as_seconds_f64();
    let mut page = runners::list(&core.hot.api, caller.organization, lease, paging.after, paging.rows())
        .await
        .map_err(problems::store)?;
    let next_cursor = paging.cut(&mut page, |last| last.id);
    Ok(Json(RunnerList {
        items: page.into_iter().map(wire::runner).collect(),
        next_cursor,
        revision: paging.revision,
    }))
}
