use api_kit::{Caller, ETag, IfMatch, Problem, StrictJson, StrictPath};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use resource_catalog_api::{ApplyResource, Resource};

use crate::catalog::Catalog;
use crate::http::path;
use crate::{resources, wire};

/// Makes a resource what it is asked to be, creating it where it is missing. What is so already makes no new version.
#[utoipa::path(
    put,
    path = "/v1/resources/{prefix}/{name}",
    tag = "resources",
    params(("prefix" = String, Path), ("name" = String, Path)),
    request_body = ApplyResource,
    responses(
        (status = 200, description = "The resource as it is now", body = Resource, headers(("ETag" = String))),
        (status = 201, description = "The resource is new", body = Resource, headers(("ETag" = String)))
    )
)]
pub async fn put_resource(
    State(catalog): State<Catalog>,
    caller: Caller,
    StrictPath((prefix, name)): StrictPath<(String, String)>,
    if_match: IfMatch,
    StrictJson(asked): StrictJson<ApplyResource>,
) -> Result<(StatusCode, ETag, Json<Resource>), Problem> {
    let id = path::new_resource_id(&prefix, &name)?;
    let desired = wire::resource::desired(asked);
    let written = resources::put(&catalog, &caller, &id, desired, if_match).await?;
    let status = if written.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let sent = wire::resource::resource(&written.resource);
    Ok((status, ETag(sent.version), Json(sent)))
}
