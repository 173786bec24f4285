use api_kit::{Caller, Paging, Problem, StrictQuery, database_problem};
use axum::Json;
use axum::extract::State;
use control_plane_api::{PageQuery, ParkedResource, ProjectionPage, ProjectionView};
use kernel::id::OrganizationId;
use sqlx::PgConnection;

use super::store;
use crate::http::head;
use crate::planning::{PlanningApp, limit};

/// The name of the only copy there is.
pub const CATALOG: &str = "catalog";
/// Most parked resources shown.
const SHOWN: i64 = 100;

/// A page of the local copies of the catalog, by name: how far each is, and which resources are set aside.
#[utoipa::path(get, path = "/v1/projections", tag = "projections", params(PageQuery),
    responses((status = 200, body = ProjectionPage)))]
pub async fn list_projections(
    caller: Caller,
    app: State<PlanningApp>,
    query: StrictQuery<PageQuery>,
) -> Result<Json<ProjectionPage>, Problem> {
    let StrictQuery(query) = query;
    let list = ("projections", caller.organization);
    let limit = limit(query.limit)?;
    let paging: Paging<_, String> = Paging::begin(list, query.cursor.as_deref(), limit, head(&app.feed)).await?;
    let mut tx = app.begin(caller.organization).await?;
    let view = view(&mut tx, caller.organization).await;
    let view = view.map_err(|error| database_problem(&error.into()))?;
    let mut items: Vec<ProjectionView> = view.into_iter().collect();
    items.retain(|view| paging.after.as_ref().is_none_or(|last| view.name > *last));
    let next_cursor = paging.cut(&mut items, |view| view.name.clone());
    Ok(Json(ProjectionPage {
        items,
        next_cursor,
        revision: paging.revision,
    }))
}

/// The organization's copy; `None` when it is not followed.
pub async fn view(
    connection: &mut PgConnection,
    organization: OrganizationId,
) -> Result<Option<ProjectionView>, sqlx::Error> {
    let Some(cursor) = store::cursor(connection, organization).await? else {
        return Ok(None);
    };
    let resources = sqlx::query_scalar!(r#"SELECT count(*) AS "count!" FROM projected_resources WHERE NOT deleted"#)
        .fetch_one(&mut *connection)
        .await?;
    let parked = sqlx::query!(
        "SELECT resource_id, revision, problem, since FROM parked_resources ORDER BY since, resource_id LIMIT $1",
        SHOWN
    )
    .fetch_all(&mut *connection)
    .await?;
    let parked = parked.into_iter().map(|row| ParkedResource {
        resource_id: row.resource_id,
        revision: row.revision,
        problem: row.problem,
        since: row.since,
    });
    Ok(Some(ProjectionView {
        name: CATALOG.to_owned(),
        revision: cursor.revision,
        head: cursor.head,
        lag_revisions: (cursor.head - cursor.revision).max(0),
        applied_at: cursor.applied_at,
        resources: u64::try_from(resources).unwrap_or(0),
        gaps: u64::try_from(cursor.gaps).unwrap_or(0),
        rebuilt_at: cursor.rebuilt_at,
        rebuilding: cursor.rebuild_asked,
        parked: parked.collect(),
    }))
}
