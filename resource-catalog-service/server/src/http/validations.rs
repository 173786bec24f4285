//! `/v1/validations`

use api_kit::{Caller, Problem, StrictJson};
use axum::Json;
use axum::extract::State;
use resource_catalog_api::{ValidationRequest, ValidationResponse};

use crate::catalog::Catalog;
use crate::validations;

/// Judges whether many resources are still as a plan saw them, and holds them for an operation where asked.
///
/// Its own id is the operation's: repeating it asks again and sets no finalizer twice.
#[utoipa::path(
    post,
    path = "/v1/validations",
    tag = "commands",
    request_body = ValidationRequest,
    responses((status = 200, description = "What holds and what does not", body = ValidationResponse))
)]
pub async fn post_validation(
    State(catalog): State<Catalog>,
    caller: Caller,
    StrictJson(request): StrictJson<ValidationRequest>,
) -> Result<Json<ValidationResponse>, Problem> {
    validations::validate(&catalog, &caller, request).await.map(Json)
}
