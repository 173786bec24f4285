//! Reading one resource, or some by their ids.

use database::OrgTransaction;
use kernel::ResourceId;
use kernel::id::OrganizationId;
use resource_catalog_domain::Resource;
use sqlx::PgConnection;

use super::StoreError;
use super::row::{COLUMNS, ResourceRow};

/// The resource of this id.
///
/// # Errors
/// The database failed.
pub async fn get(
    connection: &mut PgConnection,
    organization: OrganizationId,
    id: &ResourceId,
) -> Result<Option<Resource>, StoreError> {
    let row = sqlx::query_file_as!(
        ResourceRow,
        "src/store/sql/get_resource.sql",
        organization.as_uuid(),
        id.as_str()
    )
    .fetch_optional(connection)
    .await?;
    row.map(ResourceRow::into_resource).transpose()
}

/// The resources of these ids that there are, each locked against other writers until the end of the transaction.
/// Locks are taken in the order of ids, so that batches never wait for each other in a circle.
///
/// # Errors
/// The database failed.
pub async fn lock(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    ids: &[&str],
) -> Result<Vec<Resource>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM resources r WHERE r.organization_id = $1 AND r.resource_id = ANY ($2) \
         ORDER BY r.resource_id FOR NO KEY UPDATE"
    );
    select(transaction, &sql, organization, ids).await
}

/// The resources of these ids that there are, all as of one moment; with `hold`, nobody may change them until the end
/// of the transaction.
///
/// # Errors
/// The database failed.
pub async fn see(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    ids: &[&str],
    hold: bool,
) -> Result<Vec<Resource>, StoreError> {
    let lock = if hold { "FOR SHARE" } else { "" };
    let sql = format!(
        "SELECT {COLUMNS} FROM resources r WHERE r.organization_id = $1 AND r.resource_id = ANY ($2) \
         ORDER BY r.resource_id {lock}"
    );
    select(transaction, &sql, organization, ids).await
}

async fn select(
    transaction: &OrgTransaction,
    sql: &str,
    organization: OrganizationId,
    ids: &[&str],
) -> Result<Vec<Resource>, StoreError> {
    let statement = transaction.prepare_cached(sql).await?;
    let rows = transaction.query(&statement, &[&organization.as_uuid(), &ids]).await?;
    rows.iter()
        .map(|row| ResourceRow::from_hot(row, 0)?.into_resource())
        .collect()
}
