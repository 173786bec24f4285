use api_kit::{Caller, Cursor, Problem, StrictQuery, database_problem};
use axum::Json;
use axum::extract::State;
use control_plane_api::{ClaimPage, PageQuery};
use kernel::id::ResourceUid;

use super::App;
use super::fault::of_store;
use super::operations::list::limit;
use crate::read::claims::page;

/// Who holds which resource, and who waits for it, since when and why.
#[utoipa::path(get, path = "/v1/claims", tag = "claims", params(PageQuery), responses((status = 200, body = ClaimPage)))]
pub async fn list_claims(
    caller: Caller,
    state: State<App>,
    query: StrictQuery<PageQuery>,
) -> Result<Json<ClaimPage>, Problem> {
    let StrictQuery(query) = query;
    let key = ("claims", caller.organization);
    let after: Option<ResourceUid> = query
        .cursor
        .as_deref()
        .map(|text| Cursor::decode(&key, text))
        .transpose()?;
    let limit = limit(query.limit)? as usize;
    let mut tx = state
        .read(caller.organization)
        .await
        .map_err(|error| database_problem(&error))?;
    let mut items = page(&mut tx, after, limit as i64 + 1).await.map_err(of_store)?;
    let more = items.len() > limit;
    items.truncate(limit);
    let next_cursor = items.last().filter(|_| more).map(|last| Cursor::encode(&key, last.uid));
    Ok(Json(ClaimPage { items, next_cursor }))
}
