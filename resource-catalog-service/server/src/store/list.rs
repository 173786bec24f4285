//! Selecting resources by the page.

use std::collections::BTreeMap;

use kernel::id::OrganizationId;
use kernel::selector::Term;
use kernel::{DottedName, Selector, SoftwareVersion};
use resource_catalog_domain::{CapabilityFilter, Resource, ResourceFilter, Types};
use serde_json::Value;
use sqlx::PgConnection;

use super::StoreError;
use super::row::ResourceRow;

/// Up to `count` resources that `filter` selects, by id, after the id `after`.
///
/// # Errors
/// The database failed.
pub async fn page(
    connection: &mut PgConnection,
    organization: OrganizationId,
    filter: &ResourceFilter,
    types: &Types,
    after: Option<&str>,
    count: i64,
) -> Result<Vec<Resource>, StoreError> {
    let type_names: Option<Vec<String>> = filter
        .resource_type
        .as_ref()
        .map(|name| types.derived(name).iter().map(DottedName::to_string).collect());
    let versions = match &filter.capability {
        Some(wanted) => versions_in_range(connection, organization, wanted).await?,
        None => None,
    };
    let (equal, other_terms) = split(&filter.selector)?;
    let rows = sqlx::query_file_as!(
        ResourceRow,
        "src/store/sql/list_resources.sql",
        organization.as_uuid(),
        after,
        type_names.as_deref(),
        filter.environment.as_deref(),
        filter.lifecycle.map(|s| s.as_str()),
        filter.health.map(|s| s.as_str()),
        equal,
        other_terms,
        filter.capability.as_ref().map(|c| c.name.as_str()),
        versions.as_deref(),
        count
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(ResourceRow::into_resource).collect()
}

/// The stated versions of a capability that lie in the wanted range; None when there is no range.
async fn versions_in_range(
    connection: &mut PgConnection,
    organization: OrganizationId,
    wanted: &CapabilityFilter,
) -> Result<Option<Vec<String>>, StoreError> {
    let Some(range) = &wanted.version else {
        return Ok(None);
    };
    let mut stated = sqlx::query_file_scalar!(
        "src/store/sql/capability_versions.sql",
        organization.as_uuid(),
        wanted.name.as_str()
    )
    .fetch_all(connection)
    .await?;
    stated.retain(|text| text.parse::<SoftwareVersion>().is_ok_and(|v| range.accepts(&v)));
    Ok(Some(stated))
}

/// Splits a selector into equalities, as one object that the labels must contain, and the other terms. A label that is
/// to equal two things leaves the second among the others, where it fails.
fn split(selector: &Selector) -> Result<(Option<Value>, Option<Value>), StoreError> {
    let mut equal: BTreeMap<&str, &str> = BTreeMap::new();
    let mut others = Vec::new();
    for term in &selector.terms {
        match term {
            Term::In { key, values } if values.len() == 1 && !equal.contains_key(key.as_str()) => {
                equal.insert(key, &values[0]);
            }
            other => others.push(other),
        }
    }
    let value = |empty: bool, value: Result<Value, serde_json::Error>| {
        value
            .map(|v| (!empty).then_some(v))
            .map_err(|e| StoreError::unreadable("selector", e))
    };
    Ok((
        value(equal.is_empty(), serde_json::to_value(&equal))?,
        value(others.is_empty(), serde_json::to_value(&others))?,
    ))
}
