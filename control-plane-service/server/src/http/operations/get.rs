use api_kit::{Caller, ETag, Problem, StrictPath, database_problem};
use axum::Json;
use axum::extract::State;
use control_plane_api::Operation;
use kernel::id::OperationId;

use crate::http::App;
use crate::http::fault::{no_operation, of_store};
use crate::read;

/// One operation, whole.
#[utoipa::path(get, path = "/v1/operations/{operation_id}", tag = "operations",
    params(("operation_id" = OperationId, Path)),
    responses((status = 200, body = Operation, headers(("ETag" = String)))))]
pub async fn get_operation(
    caller: Caller,
    state: State<App>,
    path: StrictPath<OperationId>,
) -> Result<(ETag, Json<Operation>), Problem> {
    let StrictPath(id) = path;
    let tx = state
        .database
        .begin_hot(caller.organization)
        .await
        .map_err(|error| database_problem(&error))?;
    let operation = read::operation::find(&tx, id).await.map_err(of_store)?;
    // Nothing was written; a connection lost now is the next caller's to notice.
    let _ = tx.rollback().await;
    let operation = operation.ok_or_else(|| no_operation(id))?;
    Ok((ETag(operation.summary.version), Json(operation)))
}
