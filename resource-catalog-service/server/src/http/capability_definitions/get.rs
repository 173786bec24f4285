use api_kit::{Caller, ETag, Problem, StrictPath};
use axum::Json;
use axum::extract::State;
use resource_catalog_api::CapabilityDefinition;

use crate::catalog::Catalog;
use crate::http::path;
use crate::store::StoreError;
use crate::wire;

/// Gives a capability definition.
#[utoipa::path(
    get,
    path = "/v1/capability-definitions/{capability}",
    tag = "definitions",
    params(("capability" = String, Path, description = "A dotted name, like web.http")),
    responses((status = 200, description = "The definition", body = CapabilityDefinition, headers(("ETag" = String))))
)]
pub async fn get_capability_definition(
    State(catalog): State<Catalog>,
    caller: Caller,
    StrictPath(name): StrictPath<String>,
) -> Result<(ETag, Json<CapabilityDefinition>), Problem> {
    let name = path::dotted_name("capability definition", &name)?;
    let mut transaction = catalog
        .database()
        .begin(caller.organization)
        .await
        .map_err(StoreError::from)?;
    let registry = catalog.registry(&mut transaction, caller.organization).await?;
    let found = registry
        .capabilities
        .get(&name)
        .zip(registry.registered_capabilities.get(&name));
    let Some((found, registered)) = found else {
        return Err(Problem::not_found(format_args!("capability definition {name}")));
    };
    let sent = wire::capability::capability(found, registered);
    Ok((ETag(sent.version), Json(sent)))
}
