use api_kit::{Caller, Cursor, Problem, StrictQuery};
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
    let limit = query::limit(asked.limit)? as usize;
    let list = ("resource-types", caller.organization);
    let after: Option<String> = asked.cursor.map(|c| Cursor::decode(&list, &c)).transpose()?;
    let mut transaction = catalog
        .database()
        .begin(caller.organization)
        .await
        .map_err(StoreError::from)?;
    let registry = catalog.registry(&mut transaction, caller.organization).await?;
    let mut items: Vec<_> = registry
        .types
        .iter()
        .filter(|t| after.as_ref().is_none_or(|a| t.name.as_str() > a.as_str()))
        .take(limit + 1)
        .map(|t| wire::resource_type::resource_type(t, registry.registered_types.get(&t.name)))
        .collect();
    let more = items.len() > limit;
    items.truncate(limit);
    let last = items.last().filter(|_| more).map(|t| t.name.to_string());
    let next_cursor = last.map(|name| Cursor::encode(&list, name));
    Ok(Json(ResourceTypePage { items, next_cursor }))
}
