use api_kit::{Caller, Paging, Problem, StrictQuery, database_problem};
use axum::Json;
use axum::extract::State;
use control_plane_api::{PackPage, PageQuery};

use super::{store, view};
use crate::http::head;
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
    let limit = limit(query.limit)?;
    let paging: Paging<_, (String, String)> =
        Paging::begin(key, query.cursor.as_deref(), limit, head(&app.feed)).await?;
    let (name, version) = paging.after.clone().unwrap_or_default();
    let mut tx = app.begin(caller.organization).await?;
    let mut rows = store::page(&mut tx, (&name, &version), paging.rows())
        .await
        .map_err(|error| database_problem(&error.into()))?;
    let next_cursor = paging.cut(&mut rows, |row| (row.name.clone(), row.version.clone()));
    Ok(Json(PackPage {
        items: rows.into_iter().map(view::view).collect(),
        next_cursor,
        revision: paging.revision,
    }))
}
