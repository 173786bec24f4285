//! Emptying output segments whose bytes a log bundle holds.

use database::{Database, Scope};
use kernel::id::{AttemptId, OrganizationId};

use super::error::StoreError;

const NEXT: &str = "SELECT organization_id, attempt_id FROM output_compactions LIMIT $1";
const EMPTY: &str = "UPDATE output_segments SET data = NULL
    WHERE organization_id = $1 AND attempt_id = $2 AND data IS NOT NULL";
const DONE: &str = "DELETE FROM output_compactions WHERE organization_id = $1 AND attempt_id = $2";

/// Compacts up to `limit` outputs, of any organization; answers how many.
///
/// # Errors
/// The database failed; what was not compacted is found again.
pub async fn compact(worker: &Database, limit: i64) -> Result<usize, StoreError> {
    let transaction = worker.begin_hot(Scope::All).await?;
    let rows = transaction.query(NEXT, &[&limit]).await?;
    transaction.rollback().await?;
    for row in &rows {
        let (organization, attempt) = (OrganizationId(row.get(0)), AttemptId(row.get(1)));
        let transaction = worker.begin_hot(organization).await?;
        transaction.batch_execute("SET LOCAL synchronous_commit = off").await?;
        let key = (organization.as_uuid(), attempt.as_uuid());
        transaction.execute(EMPTY, &[&key.0, &key.1]).await?;
        transaction.execute(DONE, &[&key.0, &key.1]).await?;
        failpoints::hit("execution_plane.compaction.before_commit");
        transaction.commit().await?;
        failpoints::hit("execution_plane.compaction.after_commit");
    }
    Ok(rows.len())
}
