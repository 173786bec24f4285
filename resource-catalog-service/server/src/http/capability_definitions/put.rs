use api_kit::{Caller, ETag, IfMatch, Problem, StrictJson, StrictPath};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use resource_catalog_api::{ApplyCapabilityDefinition, CapabilityDefinition};

use crate::catalog::Catalog;
use crate::definitions;
use crate::http::path;

/// Registers a capability definition, or changes it. Registering what is registered makes no new version.
#[utoipa::path(
    put,
    path = "/v1/capability-definitions/{capability}",
    tag = "definitions",
    params(("capability" = String, Path, description = "A dotted name, like web.http")),
    request_body = ApplyCapabilityDefinition,
    responses(
        (status = 200, description = "The definition as it is now", body = CapabilityDefinition,
            headers(("ETag" = String))),
        (status = 201, description = "The definition is new", body = CapabilityDefinition, headers(("ETag" = String)))
    )
)]
pub async fn put_capability_definition(
    State(catalog): State<Catalog>,
    caller: Caller,
    StrictPath(name): StrictPath<String>,
    if_match: IfMatch,
    StrictJson(asked): StrictJson<ApplyCapabilityDefinition>,
) -> Result<(StatusCode, ETag, Json<CapabilityDefinition>), Problem> {
    let name = path::new_name("capability", &name)?;
    let done = definitions::put_capability(&catalog, &caller, &name, asked, if_match).await?;
    let status = if done.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, ETag(done.version), Json(done.definition)))
}
