use api_kit::{Caller, Cursor, Problem, StrictQuery};
use axum::Json;
use axum::extract::State;
use kernel::VersionRequirement;
use resource_catalog_api::{ListResourcesQuery, ResourcePage};
use resource_catalog_domain::{CapabilityFilter, ResourceFilter};

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
    // The first page's revision goes with the cursor: a watch from it misses nothing of any page.
    let (after, revision): (Option<String>, i64) = match &asked.cursor {
        Some(cursor) => {
            let (id, revision) = Cursor::decode(&list, cursor)?;
            (Some(id), revision)
        }
        None => (None, catalog.feed().head().await?),
    };
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
        after.as_deref(),
        i64::from(limit) + 1,
    )
    .await?;
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let last = found.last().filter(|_| more).map(|r| r.id.to_string());
    Ok(Json(ResourcePage {
        items: found.iter().map(wire::resource::resource).collect(),
        next_cursor: last.map(|id| Cursor::encode(&list, (id, revision))),
        revision,
    }))
}

fn filter(asked: &ListResourcesQuery) -> Result<ResourceFilter, Problem> {
    let version: Option<VersionRequirement> = asked
        .capability_version
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|error: kernel::version::VersionError| {
            query::fault("/capability_version", "invalid_version_range", error.to_string())
        })?;
    let capability = match (&asked.capability, version) {
        (Some(name), version) => Some(CapabilityFilter {
            name: name.clone(),
            version,
        }),
        (None, None) => None,
        (None, Some(_)) => {
            let detail = "a range is of a capability: give one too";
            return Err(query::fault("/capability_version", "missing_capability", detail));
        }
    };
    Ok(ResourceFilter {
        resource_type: asked.resource_type.clone(),
        environment: asked.environment.clone(),
        selector: query::selector(asked.selector.as_deref())?,
        capability,
        health: asked.health,
        lifecycle: asked.lifecycle,
    })
}
