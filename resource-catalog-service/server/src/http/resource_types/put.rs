use api_kit::{Caller, ETag, IfMatch, Problem, StrictJson, StrictPath};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use resource_catalog_api::{ApplyResourceType, ResourceType};

use crate::catalog::Catalog;
use crate::definitions;
use crate::http::path;

/// Registers a resource type, or changes it. Registering what is registered makes no new version.
#[utoipa::path(
    put,
    path = "/v1/resource-types/{type_name}",
    tag = "definitions",
    params(("type_name" = String, Path, description = "A dotted name, like compute.node")),
    request_body = ApplyResourceType,
    responses(
        (status = 200, description = "The type as it is now", body = ResourceType, headers(("ETag" = String))),
        (status = 201, description = "The type is new", body = ResourceType, headers(("ETag" = String)))
    )
)]
pub async fn put_resource_type(
    State(catalog): State<Catalog>,
    caller: Caller,
    StrictPath(name): StrictPath<String>,
    if_match: IfMatch,
    StrictJson(asked): StrictJson<ApplyResourceType>,
) -> Result<(StatusCode, ETag, Json<ResourceType>), Problem> {
    let name = path::new_name("resource type", &name)?;
    let done = definitions::put_type(&catalog, &caller, &name, asked, if_match).await?;
    let status = if done.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, ETag(done.version), Json(done.definition)))
}
