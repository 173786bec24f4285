use api_kit::{Caller, Problem, StrictPath, database_problem};
use axum::Json;
use axum::extract::State;
use control_plane_api::PackView;

use super::{store, view};
use crate::planning::PlanningApp;

/// A published version.
#[utoipa::path(get, path = "/v1/packs/{name}/{version}", tag = "packs",
    params(("name" = String, Path), ("version" = String, Path)), responses((status = 200, body = PackView)))]
pub async fn get_pack(
    caller: Caller,
    app: State<PlanningApp>,
    path: StrictPath<(String, String)>,
) -> Result<Json<PackView>, Problem> {
    let StrictPath((name, version)) = path;
    let mut tx = app.begin(caller.organization).await?;
    let row = store::find(&mut tx, &name, &version)
        .await
        .map_err(|error| database_problem(&error.into()))?;
    row.map(|row| Json(view::view(row)))
        .ok_or_else(|| Problem::not_found(format_args!("pack {name} {version}")))
}
