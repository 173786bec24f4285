//! `/v1/finalizers`

use api_kit::{Caller, Problem, StrictPath, Tell};
use axum::extract::State;
use axum::http::StatusCode;
use kernel::id::OperationId;

use crate::catalog::Catalog;
use crate::store::{StoreError, finalizers};

/// Lets go of everything that an operation holds; 404 when it holds nothing.
#[utoipa::path(
    delete,
    path = "/v1/finalizers/{operation_id}",
    tag = "commands",
    params(("operation_id" = OperationId, Path)),
    responses((status = 204, description = "The operation holds nothing"))
)]
pub async fn delete_finalizers(
    State(catalog): State<Catalog>,
    caller: Caller,
    StrictPath(operation): StrictPath<OperationId>,
) -> Result<StatusCode, Problem> {
    let organization = caller.organization;
    let transaction = catalog.database().begin(organization).await;
    let mut transaction = transaction.map_err(StoreError::from)?;
    if finalizers::release(&mut transaction, organization, operation).await? == 0 {
        return Err(Problem::not_found(format_args!("finalizer of operation {operation}")));
    }
    let recorded = caller.act.record_sqlx(&mut transaction, Tell::accepted()).await;
    recorded.map_err(StoreError::from)?;
    failpoints::hit("catalog.finalizers.before_commit");
    transaction.commit().await.map_err(StoreError::from)?;
    failpoints::hit("catalog.finalizers.after_commit");
    Ok(StatusCode::NO_CONTENT)
}
