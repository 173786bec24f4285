use api_kit::{Caller, Cursor, Problem, StrictQuery, database_problem};
use axum::Json;
use axum::extract::State;
use control_plane_api::{PackPage, PageQuery};

use super::{store, view};
use crate::planning::{PlanningApp, limit};

/// A page of published versions, by name and version.
#[utoipa::path(get, path = "/v1/packs", tag = "packs", params(PageQuery), responses((status = 200, body = PackPage)))]
pub async fn list_packs(
    caller: Caller,
    app: State<PlanningApp>,
    query: StrictQuery<PageQuery>,
) -> Result<Json<PackPage>, Problem> {
    let StrictQuery(query) = query;
    let key = ("packs", caller.organization);
    let after: Option<(String, String)> = query
        .cursor
        .as_deref()
        .map(|text| Cursor::decode(&key, text))
        .transpose()?;
    let after = after.unwrap_or_default();
    let limit = limit(query.limit)?;
    let mut tx = app.begin(caller.organization).await?;
    let mut rows = store::page(&mut tx, (&after.0, &after.1), i64::from(limit) + 1)
        .await
        .map_err(|error| database_problem(&error.into()))?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let last = rows.last().filter(|_| more);
    let next_cursor = last.map(|row| Cursor::encode(&key, (row.name.clone(), row.version.clone())));
    Ok(Json(PackPage {
        items: rows.into_iter().map(view::view).collect(),
        next_cursor,
    }))
}
