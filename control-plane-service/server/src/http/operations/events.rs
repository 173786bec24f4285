use api_kit::{Caller, Paging, Problem, StrictPath, StrictQuery, database_problem};
use axum::Json;
use axum::extract::State;
use control_plane_api::{ListEventsQuery, OperationEventPage};
use kernel::id::OperationId;

use super::list::limit;
use crate::http::fault::{no_operation, of_store};
use crate::http::{App, head};
use crate::read::events;

/// A page of an operation's events, oldest first.
#[utoipa::path(get, path = "/v1/operations/{operation_id}/events", tag = "operations",
    params(("operation_id" = OperationId, Path), ListEventsQuery),
    responses((status = 200, body = OperationEventPage)))]
pub async fn list_events(
    caller: Caller,
    state: State<App>,
    path: StrictPath<OperationId>,
    query: StrictQuery<ListEventsQuery>,
) -> Result<Json<OperationEventPage>, Problem> {
    let (StrictPath(id), StrictQuery(query)) = (path, query);
    let key = ("events", caller.organization, id);
    let limit = limit(query.limit)?;
    let paging: Paging<_, i64> = Paging::begin(key, query.cursor.as_deref(), limit, head(&state.feed)).await?;
    let mut tx = state
        .read(caller.organization)
        .await
        .map_err(|error| database_problem(&error))?;
    let standing = events::standing(&mut tx, id).await.map_err(of_store)?;
    let standing = standing.ok_or_else(|| no_operation(id))?;
    let mut items = events::page(&mut tx, id, paging.after.unwrap_or(0), paging.rows())
        .await
        .map_err(of_store)?;
    let next_cursor = paging.cut(&mut items, |last| last.sequence);
    Ok(Json(OperationEventPage {
        items,
        next_cursor,
        last_event: standing.last_event,
        revision: paging.revision,
    }))
}
