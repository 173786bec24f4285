use api_kit::{Caller, ETag, Problem, StrictPath};
use axum::Json;
use axum::extract::State;
use resource_catalog_api::ResourceType;

use crate::catalog::Catalog;
use crate::http::path;
use crate::store::StoreError;
use crate::wire;

/// Gives a resource type, with what it amounts to once its parents are counted in.
#[utoipa::path(
    get,
    path = "/v1/resource-types/{type_name}",
    tag = "definitions",
    params(("type_name" = String, Path, description = "A dotted name, like compute.node")),
    responses((status = 200, description = "The type", body = ResourceType, headers(("ETag" = String))))
)]
pub async fn get_resource_type(
    State(catalog): State<Catalog>,
    caller: Caller,
    StrictPath(name): StrictPath<String>,
) -> Result<(ETag, Json<ResourceType>), Problem> {
    let name = path::dotted_name("resource type", &name)?;
    let mut transaction = catalog
        .database()
        .begin(caller.organization)
        .await
        .map_err(StoreError::from)?;
    let registry = catalog.registry(&mut transaction, caller.organization).await?;
    let Some(found) = registry.types.get(&name) else {
        return Err(Problem::not_found(format_args!("resource type {name}")));
    };
    let sent = wire::resource_type::resource_type(found, registry.registered_types.get(&name));
    Ok((ETag(sent.version), Json(sent)))
}
