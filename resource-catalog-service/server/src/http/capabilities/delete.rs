use api_kit::{Caller, ETag, IfMatch, Problem, StrictPath};
use axum::Json;
use axum::extract::State;
use resource_catalog_api::Resource;

use crate::catalog::Catalog;
use crate::http::path;
use crate::{resources, wire};

/// Says that a resource was seen not to provide a capability any more; nothing changes when it did not.
#[utoipa::path(
    delete,
    path = "/v1/resources/{prefix}/{name}/capabilities/{capability}",
    tag = "capabilities",
    params(("prefix" = String, Path), ("name" = String, Path), ("capability" = String, Path)),
    responses((status = 200, description = "The resource as it is now", body = Resource, headers(("ETag" = String))))
)]
pub async fn delete_capability(
    State(catalog): State<Catalog>,
    caller: Caller,
    StrictPath((prefix, name, capability)): StrictPath<(String, String, String)>,
    if_match: IfMatch,
) -> Result<(ETag, Json<Resource>), Problem> {
    let id = path::resource_id(&prefix, &name)?;
    let capability = path::dotted_name("capability", &capability)?;
    let written = resources::capability(&catalog, &caller, &id, &capability, None, if_match).await?;
    let sent = wire::resource::resource(&written);
    Ok((ETag(sent.version), Json(sent)))
}
