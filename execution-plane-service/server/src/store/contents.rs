//! Which bundles an organization uploaded.

use audit::NewFact;
use database::Database;
use kernel::Sha256Digest;
use kernel::id::OrganizationId;

use super::error::StoreError;
use super::words;

/// Records a bundle whose bytes are durable; answers whether it is new.
///
/// # Errors
/// The database failed.
pub async fn record(
    database: &Database,
    organization: OrganizationId,
    sha256: Sha256Digest,
    size_bytes: u64,
    fact: Option<NewFact>,
) -> Result<bool, StoreError> {
    let mut transaction = database.begin(organization).await?;
    let done = sqlx::query!(
        "INSERT INTO contents (organization_id, sha256, size_bytes) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        organization.as_uuid(),
        sha256.as_bytes().as_slice(),
        words::column(size_bytes)
    )
    .execute(&mut *transaction)
    .await?;
    audit::append_sqlx(&mut transaction, fact.as_slice()).await?;
    failpoints::hit("execution_plane.content.before_commit");
    transaction.commit().await?;
    failpoints::hit("execution_plane.content.after_commit");
    Ok(done.rows_affected() == 1)
}

/// The size of a bundle that the organization uploaded.
///
/// # Errors
/// The database failed.
pub async fn size(
    database: &Database,
    organization: OrganizationId,
    sha256: Sha256Digest,
) -> Result<Option<u64>, StoreError> {
    let mut transaction = database.begin(organization).await?;
    let row = sqlx::query!(
        "SELECT size_bytes FROM contents WHERE organization_id = $1 AND sha256 = $2",
        organization.as_uuid(),
        sha256.as_bytes().as_slice()
    )
    .fetch_optional(&mut *transaction)
    .await?;
    Ok(row.map(|row| words::count(row.size_bytes)))
}
