use api_kit::{Caller, Cursor, Problem, StrictQuery};
use axum::Json;
use axum::extract::State;
use resource_catalog_api::{CapabilityDefinitionPage, ListDefinitionsQuery};

use crate::catalog::Catalog;
use crate::http::query;
use crate::store::StoreError;
use crate::wire;

/// Lists capability definitions by name.
#[utoipa::path(
    get,
    path = "/v1/capability-definitions",
    tag = "definitions",
    params(ListDefinitionsQuery),
    responses((status = 200, description = "One page", body = CapabilityDefinitionPage))
)]
pub async fn list_capability_definitions(
    State(catalog): State<Catalog>,
    caller: Caller,
    StrictQuery(asked): StrictQuery<ListDefinitionsQuery>,
) -> Result<Json<CapabilityDefinitionPage>, Problem> {
    let limit = query::limit(asked.limit)? as usize;
    let list = ("capability-definitions", caller.organization);
    let after: Option<String> = asked.cursor.map(|c| Cursor::decode(&list, &c)).transpose()?;
    let mut transaction = catalog
        .database()
        .begin(caller.organization)
        .await
        .map_err(StoreError::from)?;
    let registry = catalog.registry(&mut transaction, caller.organization).await?;
    let mut items: Vec<_> = registry
        .registered_capabilities
        .iter()
        .filter(|(name, _)| after.as_ref().is_none_or(|a| name.as_str() > a.as_str()))
        .filter_map(|(name, registered)| Some((registry.capabilities.get(name)?, registered)))
        .take(limit + 1)
        .map(|(found, registered)| wire::capability::capability(found, registered))
        .collect();
    let more = items.len() > limit;
    items.truncate(limit);
    let last = items.last().filter(|_| more).map(|c| c.name.to_string());
    let next_cursor = last.map(|name| Cursor::encode(&list, name));
    Ok(Json(CapabilityDefinitionPage { items, next_cursor }))
}
