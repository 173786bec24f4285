use api_kit::{Caller, Paging, Problem, StrictPath, StrictQuery, database_problem};
use axum::Json;
use axum::extract::State;
use control_plane_api::{ListNodeRunsQuery, NodeRunPage};
use kernel::id::OperationId;

use super::list::limit;
use crate::http::fault::{of_engine, of_store};
use crate::http::{App, head};
use crate::read::node_runs::page;

/// A page of an operation's node runs with their attempts, in plan order.
#[utoipa::path(get, path = "/v1/operations/{operation_id}/node-runs", tag = "operations",
    params(("operation_id" = OperationId, Path), ListNodeRunsQuery),
    responses((status = 200, body = NodeRunPage)))]
pub async fn list_node_runs(
    caller: Caller,
    state: State<App>,
    path: StrictPath<OperationId>,
    query: StrictQuery<ListNodeRunsQuery>,
) -> Result<Json<NodeRunPage>, Problem> {
    let (StrictPath(id), StrictQuery(query)) = (path, query);
    let plan = state.engine.plan_of(caller.organization, id).await.map_err(of_engine)?;
    let key = ("node-runs", caller.organization, id, query.state, plan.revision());
    let limit = limit(query.limit)?;
    let paging: Paging<_, usize> = Paging::begin(key, query.cursor.as_deref(), limit, head(&state.feed)).await?;
    let from = paging.after.map_or(0, |after| after.saturating_add(1));
    let mut tx = state
        .read(caller.organization)
        .await
        .map_err(|error| database_problem(&error))?;
    let plan = plan.document().plan();
    let mut runs = page(&mut tx, id, plan, query.state, from, paging.peek())
        .await
        .map_err(of_store)?;
    let next_cursor = paging.cut(&mut runs, |(position, _)| *position);
    Ok(Json(NodeRunPage {
        items: runs.into_iter().map(|(_, run)| run).collect(),
        next_cursor,
        revision: paging.revision,
    }))
}
