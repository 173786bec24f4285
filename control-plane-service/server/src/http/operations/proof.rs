use api_kit::{Caller, Problem, StrictPath, database_problem, internal_problem};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use control_plane_api::ProofExport;
use kernel::id::OperationId;

use crate::http::App;
use crate::http::fault::{no_operation, of_store};
use crate::store::load;

/// The signed proof of what an operation did, in its one canonical form: verify the bytes as they come.
#[utoipa::path(get, path = "/v1/operations/{operation_id}/proof", tag = "operations",
    params(("operation_id" = OperationId, Path)),
    responses((status = 200, body = ProofExport)))]
pub async fn export_proof(
    caller: Caller,
    state: State<App>,
    path: StrictPath<OperationId>,
) -> Result<impl IntoResponse + use<>, Problem> {
    let StrictPath(id) = path;
    let tx = state
        .database
        .begin_hot(caller.organization)
        .await
        .map_err(|error| database_problem(&error))?;
    let proven = load::proven(&tx, id).await.map_err(of_store)?;
    // Nothing was written; a connection lost now is the next caller's to notice.
    let _ = tx.rollback().await;
    let (rows, plans) = proven.ok_or_else(|| no_operation(id))?;
    match control_plane_proof::export(&rows, &plans, state.signer.as_ref()) {
        Ok(document) => Ok(([(CONTENT_TYPE, "application/json")], document)),
        Err(control_plane_proof::ExportError::Unprovable(fault)) => Err(Problem::conflict(
            "not_provable",
            format!("What the operation did so far makes no whole chain: {fault}."),
        )
        .remedy("Ask again when the operation has ended.")),
        Err(error) => Err(internal_problem(&error)),
    }
}
