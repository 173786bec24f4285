use std::sync::Arc;

use api_kit::{Caller, Cursor, Problem, StrictQuery};
use axum::Json;
use axum::extract::State as Shared;
use execution_plane_api::RunnerList;
use kernel::id::RunnerId;

use super::queries::RunnerPage;
use super::{problems, wire};
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
    let after: Option<RunnerId> = match &query.cursor {
        Some(cursor) => Some(Cursor::decode(&selects, cursor)?),
        None => None,
    };
    let lease = core.hot.config.lease.lease.as_seconds_f64();
    let limit = query.limit;
    let mut page = runners::list(&core.hot.api, caller.organization, lease, after, limit.with_peek())
        .await
        .map_err(problems::store)?;
    let has_more = page.len() > limit.get() as usize;
    page.truncate(limit.get() as usize);
    let last = page.last().filter(|_| has_more).map(|last| last.id);
    Ok(Json(RunnerList {
        items: page.into_iter().map(wire::runner).collect(),
        next_cursor: last.map(|last| Cursor::encode(&selects, last)),
    }))
}
