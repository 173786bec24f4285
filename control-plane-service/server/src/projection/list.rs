use api_kit::{Caller, Problem, database_problem};
use axum::Json;
use axum::extract::State;
use control_plane_api::{ParkedResource, ProjectionView};
use kernel::id::OrganizationId;
use sqlx::PgConnection;

use super::store;
use crate::planning::PlanningApp;

/// The name of the only copy there is.
pub const CATALOG: &str = "catalog";
/// Most parked resources shown.
const SHOWN: i64 = 100;

/// How far the local copy of the catalog is, and which resources are set aside.
#[utoipa::path(get, path = "/v1/projections", tag = "projections",
    responses((status = 200, body = Vec<ProjectionView>)))]
pub async fn list_projections(caller: Caller, app: State<PlanningApp>) -> Result<Json<Vec<ProjectionView>>, Problem> {
    let mut tx = app.begin(caller.organization).await?;
    let view = view(&mut tx, caller.organization).await;
    let view = view.map_err(|error| database_problem(&error.into()))?;
    Ok(Json(view.into_iter().collect()))
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
