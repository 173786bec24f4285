use api_kit::{Caller, FieldError, Paging, Problem, StrictPath, StrictQuery, database_problem};
use axum::Json;
use axum::extract::State;
use control_plane_api::{GateList, GateView, PageQuery};
use database::OrgTransaction;
use kernel::id::OperationId;

use crate::http::fault::{no_operation, of_engine, of_store};
use crate::http::operations::list::limit;
use crate::http::{App, head};
use crate::planner::Planner;
use crate::read::gates::{Context, views};
use crate::read::operation::find;
use crate::store::{gate, node_run};

/// A page of an operation's gates in plan order, with what each covers: what a decision binds to.
#[utoipa::path(get, path = "/v1/operations/{operation_id}/gates", tag = "gates",
    params(("operation_id" = OperationId, Path), PageQuery), responses((status = 200, body = GateList)))]
pub async fn list_gates(
    caller: Caller,
    state: State<App>,
    path: StrictPath<OperationId>,
    query: StrictQuery<PageQuery>,
) -> Result<Json<GateList>, Problem> {
    let (StrictPath(id), StrictQuery(query)) = (path, query);
    let list = ("gates", caller.organization, id);
    let limit = limit(query.limit)?;
    let paging: Paging<_, String> = Paging::begin(list, query.cursor.as_deref(), limit, head(&state.feed)).await?;
    // Before the transaction: whoever holds one connection and waits for another can wait for ever.
    let plan = state.engine.plan_of(caller.organization, id).await.map_err(of_engine)?;
    let tx = state
        .database
        .begin_hot(caller.organization)
        .await
        .map_err(|error| database_problem(&error))?;
    let mut items = gates(&tx, state.planner.as_ref(), &plan, &caller, id).await?;
    let _ = tx.rollback().await;
    if let Some(last) = &paging.after {
        let begun = items.iter().position(|gate| gate.node_id == *last);
        items.drain(..=begun.ok_or_else(replanned)?);
    }
    let next_cursor = paging.cut(&mut items, |last| last.node_id.clone());
    Ok(Json(GateList {
        items,
        next_cursor,
        revision: paging.revision,
    }))
}

/// The plan in force does not have the gate that the last page ended with.
fn replanned() -> Problem {
    let detail = "the plan was revised, and the gate that the last page ended with is gone";
    Problem::invalid([FieldError::new("/cursor", "invalid_cursor", detail)])
        .remedy("Begin again without a cursor: the gates are those of the revised plan.")
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
