use api_kit::{Caller, Paging, Problem, StrictQuery};
use axum::Json;
use axum::extract::State;
use resource_catalog_api::{ListDefinitionsQuery, ResourceTypePage};

use crate::catalog::Catalog;
use crate::http::query;
use crate::store::StoreError;
use crate::wire;

/// Lists resource types by name, built-in ones included.
#[utoipa::path(
    get,
    path = "/v1/resource-types",
    tag = "definitions",
    params(ListDefinitionsQuery),
    responses((status = 200, description = "One page", body = ResourceTypePage))
)]
pub async fn list_resource_types(
    State(catalog): State<Catalog>,
    caller: Caller,
    StrictQuery(asked): StrictQuery<ListDefinitionsQuery>,
) -> Result<Json<ResourceTypePage>, Problem> {
    let limit = query::limit(asked.limit)?;
    let list = ("resource-types", caller.organization);
    let paging: Paging<_, String> = Paging::begin(list, asked.cursor.as_deref(), limit, catalog.feed().head()).await?;
    let mut transaction = catalog
        .database()
        .begin(caller.organization)
        .await
        .map_err(StoreError::from)?;
    let registry = catalog.registry(&mut transaction, caller.organization).await?;
    let mut items: Vec<_> = registry
        .types
        .iter()
        .filter(|t| paging.after.as_ref().is_none_or(|a| t.name.as_str() > a.as_str()))
        .take(paging.peek())
        .map(|t| wire::resource_type::resource_type(t, registry.registered_types.get(&t.name)))
        .collect();
    let next_cursor = paging.cut(&mut items, |t| t.name.to_string());
    Ok(Json(ResourceTypePage {
        items,
        next_cursor,
        revision: paging.revision,
    }))
}
