use api_kit::{Caller, Problem, StrictPath, database_problem};
use axum::Json;
use axum::extract::State;
use control_plane_api::{GateList, GateView};
use database::OrgTransaction;
use kernel::id::OperationId;

use crate::http::App;
use crate::http::fault::{no_operation, of_engine, of_store};
use crate::planner::Planner;
use crate::read::gates::{Context, views};
use crate::read::operation::find;
use crate::store::{gate, node_run};

/// An operation's gates in plan order, with what each covers: what a decision binds to.
#[utoipa::path(get, path = "/v1/operations/{operation_id}/gates", tag = "gates",
    params(("operation_id" = OperationId, Path)), responses((status = 200, body = GateList)))]
pub async fn list_gates(
    caller: Caller,
    state: State<App>,
    path: StrictPath<OperationId>,
) -> Result<Json<GateList>, Problem> {
    let StrictPath(id) = path;
    // Before the transaction: whoever holds one connection and waits for another can wait for ever.
    let plan = state.engine.plan_of(caller.organization, id).await.map_err(of_engine)?;
    let tx = state
        .database
        .begin_hot(caller.organization)
        .await
        .map_err(|error| database_problem(&error))?;
    let items = gates(&tx, state.planner.as_ref(), &plan, &caller, id).await?;
    let _ = tx.rollback().await;
    Ok(Json(GateList { items }))
}

/// Every gate of the operation as `caller` sees it.
pub async fn gates(
    tx: &OrgTransaction,
    planner: &dyn Planner,
    plan: &control_plane_operation::PlanIndex,
    caller: &Caller,
    id: OperationId,
) -> Result<Vec<GateView>, Problem> {
    let operation = find(tx, id).await.map_err(of_store)?.ok_or_else(|| no_operation(id))?;
    let askings = gate::of(tx, id).await.map_err(of_store)?;
    let nodes = node_run::latest_of_gates(tx, plan, id).await.map_err(of_store)?;
    let advice = planner.advice(caller.organization, operation.plan.plan_id).await?;
    let has_role = |role: &str| caller.roles.iter().any(|held| held.to_string() == role);
    let context = Context {
        plan,
        plan_id: operation.plan.plan_id,
        requester: &operation.summary.requested_by,
        is_over: operation.summary.state.is_end(),
        advice: advice.as_ref(),
        nodes: &nodes,
        subject: &caller.subject,
        has_role: &has_role,
    };
    Ok(views(&context, &askings))
}
