use api_kit::{Caller, Cursor, Problem, StrictPath, StrictQuery, database_problem};
use axum::Json;
use axum::extract::State;
use control_plane_api::{ListEventsQuery, OperationEventPage};
use kernel::id::OperationId;

use super::list::limit;
use crate::http::App;
use crate::http::fault::{no_operation, of_store};
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
    let after: Option<i64> = query
        .cursor
        .as_deref()
        .map(|text| Cursor::decode(&key, text))
        .transpose()?;
    let limit = limit(query.limit)? as usize;
    let mut tx = state
        .read(caller.organization)
        .await
        .map_err(|error| database_problem(&error))?;
    let standing = events::standing(&mut tx, id).await.map_err(of_store)?;
    let standing = standing.ok_or_else(|| no_operation(id))?;
    let mut items = events::page(&mut tx, id, after.unwrap_or(0), limit as i64 + 1)
        .await
        .map_err(of_store)?;
    let more = items.len() > limit;
    items.truncate(limit);
    let next_cursor = items
        .last()
        .filter(|_| more)
        .map(|last| Cursor::encode(&key, last.sequence));
    Ok(Json(OperationEventPage {
        items,
        next_cursor,
        last_event: standing.last_event,
    }))
}
