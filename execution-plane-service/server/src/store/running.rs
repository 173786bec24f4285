//! Which attempts of an organization run. Looked up through live leases, of which there are few; an attempt
//! that has ended has none.

use chrono::{DateTime, Utc};
use database::Database;
use execution_plane_api::{Running, RunningAttempt};
use kernel::id::{AttemptId, OperationId, OrganizationId};
use uuid::Uuid;

use super::error::StoreError;

/// Most that are told at once.
const MOST: usize = 1000;
const RUNNING: &str = "SELECT a.attempt_id, a.operation_id, a.started_at, r.name
    FROM leases l JOIN attempts a USING (organization_id, attempt_id)
    JOIN runners r ON r.organization_id = l.organization_id AND r.runner_id = l.runner_id
    WHERE l.organization_id = $1 AND a.state IN ('running', 'cancelling')
        AND a.started_at > COALESCE($2, '-infinity'::timestamptz)
        AND a.started_at <= now() - interval '500 milliseconds' AND NOT a.attempt_id = ANY ($3::uuid[])
    ORDER BY a.started_at, a.attempt_id LIMIT $4";

/// Those that began after `after`, without `known`.
///
/// # Errors
/// The database failed.
pub async fn running(
    database: &Database,
    organization: OrganizationId,
    after: Option<DateTime<Utc>>,
    known: &[AttemptId],
) -> Result<Running, StoreError> {
    let known: Vec<Uuid> = known.iter().map(|id| id.as_uuid()).collect();
    let transaction = database.begin_hot(organization).await?;
    let statement = transaction.prepare_cached(RUNNING).await?;
    let limit = MOST as i64 + 1;
    let rows = transaction
        .query(&statement, &[&organization.as_uuid(), &after, &known, &limit])
        .await?;
    let as_of = transaction.query_one("SELECT now()", &[]).await?.get(0);
    transaction.rollback().await?;
    let attempt = |row: &tokio_postgres::Row| RunningAttempt {
        attempt_id: AttemptId(row.get(0)),
        operation_id: OperationId(row.get(1)),
        started_at: row.get(2),
        runner: row.get(3),
    };
    Ok(Running {
        as_of,
        attempts: rows.iter().take(MOST).map(attempt).collect(),
        more: rows.len() > MOST,
    })
}
