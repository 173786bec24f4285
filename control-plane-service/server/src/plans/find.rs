use api_kit::{Caller, Problem, StrictPath, database_problem};
use axum::Json;
use axum::extract::State;
use control_plane_api::PlanView;
use kernel::id::PlanId;

use super::planner::of_store;
use super::store;
use crate::planning::PlanningApp;

/// A kept plan.
#[utoipa::path(get, path = "/v1/plans/{id}", tag = "plans", params(("id" = PlanId, Path)),
    responses((status = 200, body = PlanView)))]
pub async fn get_plan(
    caller: Caller,
    app: State<PlanningApp>,
    path: StrictPath<PlanId>,
) -> Result<Json<PlanView>, Problem> {
    let StrictPath(id) = path;
    let mut tx = app.begin(caller.organization).await?;
    let row = store::find(&mut tx, id).await.map_err(of_store)?;
    let row = row.ok_or_else(|| Problem::not_found(format_args!("plan {id}")))?;
    let operation_id = store::operation(&mut tx, id)
        .await
        .map_err(|error| database_problem(&error.into()))?;
    Ok(Json(PlanView {
        id: row.id,
        created_at: row.created_at,
        created_by: row.created_by,
        satisfiable: row.document.is_some(),
        digest: row.document.as_ref().map(|document| document.digest()),
        plan: row.document.map(|document| document.plan().clone()),
        advice: row.advice,
        operation_id,
    }))
}
