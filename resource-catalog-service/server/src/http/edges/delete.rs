use api_kit::{Caller, ETag, IfMatch, Problem, StrictPath};
use axum::Json;
use axum::extract::State;
use resource_catalog_api::Resource;

use crate::catalog::Catalog;
use crate::http::path;
use crate::{resources, wire};

/// Removes an edge; nothing changes when it is not there.
#[utoipa::path(
    delete,
    path = "/v1/resources/{prefix}/{name}/edges/{edge_type}/{target_prefix}/{target_name}",
    tag = "edges",
    params(
        ("prefix" = String, Path),
        ("name" = String, Path),
        ("edge_type" = resource_catalog_api::EdgeType, Path),
        ("target_prefix" = String, Path),
        ("target_name" = String, Path)
    ),
    responses((status = 200, description = "The source as it is now", body = Resource, headers(("ETag" = String))))
)]
pub async fn delete_edge(
    State(catalog): State<Catalog>,
    caller: Caller,
    StrictPath((prefix, name, edge_type, target_prefix, target_name)): StrictPath<(
        String,
        String,
        String,
        String,
        String,
    )>,
    if_match: IfMatch,
) -> Result<(ETag, Json<Resource>), Problem> {
    let id = path::resource_id(&prefix, &name)?;
    let edge = path::edge(&edge_type, &target_prefix, &target_name)?;
    let written = resources::edge(&catalog, &caller, &id, edge, false, if_match).await?;
    let sent = wire::resource::resource(&written);
    Ok((ETag(sent.version), Json(sent)))
}
