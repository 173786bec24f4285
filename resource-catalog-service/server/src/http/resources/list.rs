use api_kit::{Caller, Paging, Problem, StrictQuery};
use axum::Json;
use axum::extract::State;
use resource_catalog_api::{ListResourcesQuery, ResourcePage};
use resource_catalog_domain::ResourceFilter;

use crate::catalog::Catalog;
use crate::http::query;
use crate::store::{StoreError, list};
use crate::wire;

/// Lists resources by id, those that satisfy every condition.
#[utoipa::path(
    get,
    path = "/v1/resources",
    tag = "resources",
    params(ListResourcesQuery),
    responses((status = 200, description = "One page", body = ResourcePage))
)]
pub async fn list_resources(
    State(catalog): State<Catalog>,
    caller: Caller,
    StrictQuery(asked): StrictQuery<ListResourcesQuery>,
) -> Result<Json<ResourcePage>, Problem> {
    let limit = query::limit(asked.limit)?;
    let filter = filter(&asked)?;
    let conditions = ListResourcesQuery {
        limit: None,
        cursor: None,
        ..asked.clone()
    };
    let list = ("resources", caller.organization, conditions);
    let paging: Paging<_, String> = Paging::begin(list, asked.cursor.as_deref(), limit, catalog.feed().head()).await?;
    let mut transaction = catalog
        .database()
        .begin(caller.organization)
        .await
        .map_err(StoreError::from)?;
    let registry = catalog.registry(&mut transaction, caller.organization).await?;
    if let Some(name) = filter
        .resource_type
        .as_ref()
        .filter(|t| registry.types.get(t).is_none())
    {
        let detail = format!("there is no resource type {name}");
        return Err(query::fault("/type", "unknown_type", detail));
    }
    let mut found = list::page(
        &mut transaction,
        caller.organization,
        &filter,
        &registry.types,
        paging.after.as_deref(),
        paging.rows(),
    )
    .await?;
    let next_cursor = paging.cut(&mut found, |resource| resource.id.to_string());
    Ok(Json(ResourcePage {
        items: found.iter().map(wire::resource::resource).collect(),
        next_cursor,
        revision: paging.revision,
    }))
}

fn filter(asked: &ListResourcesQuery) -> Result<ResourceFilter, Problem> {
    Ok(ResourceFilter {
        resource_type: asked.resource_type.clone(),
        environment: asked.environment.clone(),
        selector: query::selector(asked.selector.as_deref())?,
        capability: query::capability(asked.capability.as_ref(), asked.capability_version.as_deref())?,
        health: asked.health,
        lifecycle: asked.lifecycle,
    })
}
