//! The set of results that control-plane has not acknowledged.

use contracts::ExecutionResult;
use database::Database;
use kernel::id::{AttemptId, OrganizationId};
use uuid::Uuid;

use super::error::StoreError;

const ACKNOWLEDGE: &str = "UPDATE results SET acknowledged_at = clock_timestamp()
    WHERE organization_id = $1 AND attempt_id = ANY ($2::uuid[]) AND acknowledged_at IS NULL";
const PULL: &str = "SELECT body FROM results
    WHERE organization_id = $1 AND acknowledged_at IS NULL ORDER BY position LIMIT $2";

/// Acknowledges `ids`. An acknowledgement that is lost only makes a result come again, so the commit
/// is not waited for.
///
/// # Errors
/// The database failed.
pub async fn acknowledge(
    database: &Database,
    organization: OrganizationId,
    ids: &[AttemptId],
) -> Result<(), StoreError> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.as_uuid()).collect();
    let transaction = database.begin_unsynced(organization).await?;
    let statement = transaction.prepare_cached(ACKNOWLEDGE).await?;
    transaction
        .execute(&statement, &[&organization.as_uuid(), &ids])
        .await?;
    failpoints::hit("execution_plane.ack.before_commit");
    transaction.commit().await?;
    failpoints::hit("execution_plane.ack.after_commit");
    Ok(())
}

/// The oldest unacknowledged results.
///
/// # Errors
/// The database failed.
pub async fn pull(
    database: &Database,
    organization: OrganizationId,
    limit: u32,
) -> Result<Vec<ExecutionResult>, StoreError> {
    let transaction = database.begin_pipelined(organization).await?;
    let statement = transaction.prepare_cached(PULL).await?;
    let rows = transaction
        .query(&statement, &[&organization.as_uuid(), &i64::from(limit)])
        .await?;
    transaction.rollback().await?;
    let read = |row: &tokio_postgres::Row| serde_json::from_str(row.get(0)).map_err(StoreError::corrupt("result"));
    rows.iter().map(read).collect()
}
