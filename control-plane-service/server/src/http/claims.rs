use api_kit::{Caller, Paging, Problem, StrictQuery, database_problem};
use axum::Json;
use axum::extract::State;
use control_plane_api::{ClaimPage, PageQuery};
use kernel::id::ResourceUid;

use super::fault::of_store;
use super::operations::list::limit;
use super::{App, head};
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
    let limit = limit(query.limit)?;
    let paging: Paging<_, ResourceUid> = Paging::begin(key, query.cursor.as_deref(), limit, head(&state.feed)).await?;
    let mut tx = state
        .read(caller.organization)
        .await
        .map_err(|error| database_problem(&error))?;
    let mut items = page(&mut tx, paging.after, paging.rows()).await.map_err(of_store)?;
    let next_cursor = paging.cut(&mut items, |last| last.uid);
    Ok(Json(ClaimPage {
        items,
        next_cursor,
        revision: paging.revision,
    }))
}
