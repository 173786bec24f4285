use std::sync::Arc;

use api_kit::{Caller, Paging, Problem, StrictQuery};
use axum::Json;
use axum::extract::State as Shared;
use execution_plane_api::{AttemptList, AttemptState};
use kernel::id::{AttemptId, OperationId};
use serde::Serialize;

use super::queries::AttemptFilter;
use super::{head, problems, wire};
use crate::core::Core;
use crate::store::attempts::{self, Filter};

/// What selects and sorts, for the cursor.
#[derive(Serialize)]
struct Selects {
    list: &'static str,
    organization: kernel::id::OrganizationId,
    operation_id: Option<OperationId>,
    state: Option<AttemptState>,
}

/// Lists attempts, the newest first.
#[utoipa::path(get, path = "/v1/attempts", tag = "attempts", params(AttemptFilter),
    responses((status = 200, body = AttemptList)))]
pub async fn list_attempts(
    Shared(core): Shared<Arc<Core>>,
    caller: Caller,
    StrictQuery(query): StrictQuery<AttemptFilter>,
) -> Result<Json<AttemptList>, Problem> {
    let selects = Selects {
        list: "attempts",
        organization: caller.organization,
        operation_id: query.operation_id,
        state: query.state,
    };
    let paging: Paging<_, AttemptId> =
        Paging::begin(selects, query.cursor.as_deref(), query.limit.get(), head(&core)).await?;
    let filter = Filter {
        operation: query.operation_id,
        state: query.state.map(wire::domain_state),
    };
    let mut page = attempts::list(&core.hot.api, caller.organization, filter, paging.after, paging.rows())
        .await
        .map_err(problems::store)?;
    let next_cursor = paging.cut(&mut page, |last| last.id);
    Ok(Json(AttemptList {
        items: page.into_iter().map(wire::summary).collect(),
        next_cursor,
        revision: paging.revision,
    }))
}
