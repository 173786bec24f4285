//! Resource types and capability definitions. Writers of one organization take turns on its row of `registries`.

use chrono::{DateTime, Utc};
use database::OrgTransaction;
use kernel::DottedName;
use kernel::id::OrganizationId;
use resource_catalog_api::{ApplyCapabilityDefinition, ApplyResourceType};
use resource_catalog_domain::{CapabilityDefinition, TypeDefinition};
use serde_json::Value;
use sqlx::PgConnection;

use super::StoreError;
use crate::registry::{Registered, Registry};
use crate::wire;

/// The revision of an organization's registry; 0 when it has defined nothing.
///
/// # Errors
/// The database failed.
pub async fn revision(connection: &mut PgConnection, organization: OrganizationId) -> Result<i64, StoreError> {
    let found = sqlx::query_scalar!(
        "SELECT revision FROM registries WHERE organization_id = $1",
        organization.as_uuid()
    )
    .fetch_optional(connection)
    .await?;
    Ok(found.unwrap_or(0))
}

/// Bumps the revision and keeps other writers of definitions out until the end of the transaction.
///
/// # Errors
/// The database failed.
pub async fn lock(connection: &mut PgConnection, organization: OrganizationId) -> Result<i64, StoreError> {
    let revision = sqlx::query_scalar!(
        "INSERT INTO registries AS r (organization_id, revision) VALUES ($1, 1)
         ON CONFLICT (organization_id) DO UPDATE SET revision = r.revision + 1
         RETURNING revision",
        organization.as_uuid()
    )
    .fetch_one(connection)
    .await?;
    Ok(revision)
}

/// Everything an organization has defined, resolved. Inside a transaction that holds the lock it is exact; outside, a
/// definition may be newer than `revision`, which the next look at the revision puts right.
///
/// # Errors
/// The database failed, or something stored does not resolve.
pub async fn load(
    connection: &mut PgConnection,
    organization: OrganizationId,
    revision: i64,
) -> Result<Registry, StoreError> {
    let types = sqlx::query!(
        "SELECT name, definition, version, created_at, updated_at FROM resource_types WHERE organization_id = $1",
        organization.as_uuid()
    )
    .fetch_all(&mut *connection)
    .await?
    .into_iter()
    .map(|row| {
        let registered = Registered {
            version: row.version,
            created_at: row.created_at,
            updated_at: row.updated_at,
        };
        Ok((stored_type(&row.name, row.definition)?, registered))
    })
    .collect::<Result<Vec<_>, StoreError>>()?;
    let capabilities = sqlx::query!(
        "SELECT name, definition, version, created_at, updated_at FROM capability_definitions
         WHERE organization_id = $1",
        organization.as_uuid()
    )
    .fetch_all(connection)
    .await?
    .into_iter()
    .map(|row| {
        let registered = Registered {
            version: row.version,
            created_at: row.created_at,
            updated_at: row.updated_at,
        };
        Ok((stored_capability(&row.name, row.definition)?, registered))
    })
    .collect::<Result<Vec<_>, StoreError>>()?;
    Ok(Registry::resolve(revision, types, capabilities)?)
}

fn stored_type(name: &str, definition: Value) -> Result<TypeDefinition, StoreError> {
    let name: DottedName = name.parse().map_err(|e| StoreError::unreadable("resource type", e))?;
    let given: ApplyResourceType =
        serde_json::from_value(definition).map_err(|e| StoreError::unreadable("resource type", e))?;
    Ok(wire::resource_type::definition(name, &given))
}

fn stored_capability(name: &str, definition: Value) -> Result<CapabilityDefinition, StoreError> {
    let name: DottedName = name.parse().map_err(|e| StoreError::unreadable("capability", e))?;
    let given: ApplyCapabilityDefinition =
        serde_json::from_value(definition).map_err(|e| StoreError::unreadable("capability", e))?;
    Ok(wire::capability::definition(name, &given))
}

/// Writes a resource type as it was given.
///
/// # Errors
/// The database failed.
pub async fn put_type(
    connection: &mut PgConnection,
    organization: OrganizationId,
    name: &DottedName,
    definition: &ApplyResourceType,
    now: DateTime<Utc>,
) -> Result<Registered, StoreError> {
    let definition = serde_json::to_value(definition).map_err(|e| StoreError::unreadable("resource type", e))?;
    let row = sqlx::query_as!(
        Registered,
        "INSERT INTO resource_types AS t (organization_id, name, definition, version, created_at, updated_at)
         VALUES ($1, $2, $3, 1, $4, $4)
         ON CONFLICT (organization_id, name)
         DO UPDATE SET definition = excluded.definition, version = t.version + 1, updated_at = excluded.updated_at
         RETURNING version, created_at, updated_at",
        organization.as_uuid(),
        name.as_str(),
        definition,
        now
    )
    .fetch_one(connection)
    .await?;
    Ok(row)
}

/// Writes a capability definition as it was given.
///
/// # Errors
/// The database failed.
pub async fn put_capability(
    connection: &mut PgConnection,
    organization: OrganizationId,
    name: &DottedName,
    definition: &ApplyCapabilityDefinition,
    now: DateTime<Utc>,
) -> Result<Registered, StoreError> {
    let definition = serde_json::to_value(definition).map_err(|e| StoreError::unreadable("capability", e))?;
    let row = sqlx::query_as!(
        Registered,
        "INSERT INTO capability_definitions AS c (organization_id, name, definition, version, created_at, updated_at)
         VALUES ($1, $2, $3, 1, $4, $4)
         ON CONFLICT (organization_id, name)
         DO UPDATE SET definition = excluded.definition, version = c.version + 1, updated_at = excluded.updated_at
         RETURNING version, created_at, updated_at",
        organization.as_uuid(),
        name.as_str(),
        definition,
        now
    )
    .fetch_one(connection)
    .await?;
    Ok(row)
}

/// [`revision`] through tokio-postgres.
///
/// # Errors
/// The database failed.
pub async fn revision_hot(transaction: &OrgTransaction, organization: OrganizationId) -> Result<i64, StoreError> {
    let statement = transaction
        .prepare_cached("SELECT revision FROM registries WHERE organization_id = $1")
        .await?;
    let row = transaction.query_opt(&statement, &[&organization.as_uuid()]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or(0))
}
