use api_kit::{Caller, Paging, Problem, StrictQuery};
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
    let limit = query::limit(asked.limit)?;
    let list = ("capability-definitions", caller.organization);
    let paging: Paging<_, String> = Paging::begin(list, asked.cursor.as_deref(), limit, catalog.feed().head()).await?;
    let mut transaction = catalog
        .database()
        .begin(caller.organization)
        .await
        .map_err(StoreError::from)?;
    let registry = catalog.registry(&mut transaction, caller.organization).await?;
    let mut items: Vec<_> = registry
        .registered_capabilities
        .iter()
        .filter(|(name, _)| paging.after.as_ref().is_none_or(|a| name.as_str() > a.as_str()))
        .filter_map(|(name, registered)| Some((registry.capabilities.get(name)?, registered)))
        .take(paging.peek())
        .map(|(found, registered)| wire::capability::capability(found, registered))
        .collect();
    let next_cursor = paging.cut(&mut items, |c| c.name.to_string());
    Ok(Json(CapabilityDefinitionPage {
        items,
        next_cursor,
        revision: paging.revision,
    }))
}
