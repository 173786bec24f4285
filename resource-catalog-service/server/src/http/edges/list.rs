use api_kit::{Caller, ETag, Problem, StrictPath};
use axum::Json;
use axum::extract::State;
use resource_catalog_api::EdgePage;

use crate::catalog::Catalog;
use crate::http::path;
use crate::resources::no_resource;
use crate::store::{StoreError, resource};
use crate::wire;

/// Gives the edges that leave a resource.
#[utoipa::path(
    get,
    path = "/v1/resources/{prefix}/{name}/edges",
    tag = "edges",
    params(("prefix" = String, Path), ("name" = String, Path)),
    responses((status = 200, description = "The edges", body = EdgePage, headers(("ETag" = String))))
)]
pub async fn list_edges(
    State(catalog): State<Catalog>,
    caller: Caller,
    StrictPath((prefix, name)): StrictPath<(String, String)>,
) -> Result<(ETag, Json<EdgePage>), Problem> {
    let id = path::resource_id(&prefix, &name)?;
    let mut transaction = catalog
        .database()
        .begin(caller.organization)
        .await
        .map_err(StoreError::from)?;
    let found = resource::get(&mut transaction, caller.organization, &id).await?;
    let found = found.ok_or_else(|| no_resource(&id))?;
    let page = EdgePage {
        items: found.edges.iter().map(wire::edge::edge_word).collect(),
        version: found.version,
    };
    Ok((ETag(page.version), Json(page)))
}
