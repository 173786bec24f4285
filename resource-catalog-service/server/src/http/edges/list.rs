use api_kit::{Caller, ETag, Paging, Problem, StrictPath, StrictQuery};
use axum::Json;
use axum::extract::State;
use resource_catalog_api::{Edge, EdgePage, ListEdgesQuery};

use crate::catalog::Catalog;
use crate::http::{path, query};
use crate::resources::no_resource;
use crate::store::{StoreError, resource};
use crate::wire;

/// Lists the edges that leave a resource, by type and target.
#[utoipa::path(
    get,
    path = "/v1/resources/{prefix}/{name}/edges",
    tag = "edges",
    params(("prefix" = String, Path), ("name" = String, Path), ListEdgesQuery),
    responses((status = 200, description = "One page", body = EdgePage, headers(("ETag" = String))))
)]
pub async fn list_edges(
    State(catalog): State<Catalog>,
    caller: Caller,
    StrictPath((prefix, name)): StrictPath<(String, String)>,
    StrictQuery(asked): StrictQuery<ListEdgesQuery>,
) -> Result<(ETag, Json<EdgePage>), Problem> {
    let id = path::resource_id(&prefix, &name)?;
    let limit = query::limit(asked.limit)?;
    let list = ("edges", caller.organization, id.to_string());
    let paging: Paging<_, Edge> = Paging::begin(list, asked.cursor.as_deref(), limit, catalog.feed().head()).await?;
    let mut transaction = catalog
        .database()
        .begin(caller.organization)
        .await
        .map_err(StoreError::from)?;
    let found = resource::get(&mut transaction, caller.organization, &id).await?;
    let found = found.ok_or_else(|| no_resource(&id))?;
    let mut items: Vec<Edge> = found.edges.iter().map(wire::edge::edge_word).collect();
    items.sort();
    items.retain(|edge| paging.after.as_ref().is_none_or(|last| edge > last));
    let page = EdgePage {
        next_cursor: paging.cut(&mut items, Edge::clone),
        items,
        version: found.version,
        revision: paging.revision,
    };
    Ok((ETag(page.version), Json(page)))
}
