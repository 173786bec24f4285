//! What an operation must let go of before a resource may go. A table of its own: setting one bumps no version.

use chrono::{DateTime, Utc};
use database::OrgTransaction;
use kernel::id::{OperationId, OrganizationId, ResourceUid};
use sqlx::PgConnection;
use uuid::Uuid;

use super::StoreError;

const SET: &str = "INSERT INTO finalizers (organization_id, uid, operation_id, set_at)
SELECT $1, uid, $2, $4 FROM unnest($3::uuid[]) AS uid
ON CONFLICT DO NOTHING";

/// Sets a finalizer of `operation` on each of `uids`; those that are set stay as they are.
///
/// # Errors
/// The database failed.
pub async fn set(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    operation: OperationId,
    uids: &[ResourceUid],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let uids: Vec<Uuid> = uids.iter().map(|uid| uid.as_uuid()).collect();
    let statement = transaction.prepare_cached(SET).await?;
    transaction
        .execute(
            &statement,
            &[&organization.as_uuid(), &operation.as_uuid(), &uids, &now],
        )
        .await?;
    Ok(())
}

/// Lets go of every finalizer of `operation`; how many there were.
///
/// # Errors
/// The database failed.
pub async fn release(
    connection: &mut PgConnection,
    organization: OrganizationId,
    operation: OperationId,
) -> Result<u64, StoreError> {
    let done = sqlx::query!(
        "DELETE FROM finalizers WHERE organization_id = $1 AND operation_id = $2",
        organization.as_uuid(),
        operation.as_uuid()
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected())
}
