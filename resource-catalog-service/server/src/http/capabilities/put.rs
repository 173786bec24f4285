use api_kit::{Caller, ETag, IfMatch, Problem, StrictJson, StrictPath};
use axum::Json;
use axum::extract::State;
use resource_catalog_api::{ObserveCapability, Resource};

use crate::catalog::Catalog;
use crate::http::path;
use crate::resources::{self, Seen};
use crate::wire;

/// Says that a resource was seen to provide a capability. At least one evidence must have passed for it.
#[utoipa::path(
    put,
    path = "/v1/resources/{prefix}/{name}/capabilities/{capability}",
    tag = "capabilities",
    params(("prefix" = String, Path), ("name" = String, Path), ("capability" = String, Path)),
    request_body = ObserveCapability,
    responses((status = 200, description = "The resource as it is now", body = Resource, headers(("ETag" = String))))
)]
pub async fn put_capability(
    State(catalog): State<Catalog>,
    caller: Caller,
    StrictPath((prefix, name, capability)): StrictPath<(String, String, String)>,
    if_match: IfMatch,
    StrictJson(seen): StrictJson<ObserveCapability>,
) -> Result<(ETag, Json<Resource>), Problem> {
    let id = path::resource_id(&prefix, &name)?;
    let capability = path::dotted_name("capability", &capability)?;
    let seen = Seen {
        attributes: seen.attributes,
        evidence: seen.evidence,
    };
    let written = resources::capability(&catalog, &caller, &id, &capability, Some(seen), if_match).await?;
    let sent = wire::resource::resource(&written);
    Ok((ETag(sent.version), Json(sent)))
}
