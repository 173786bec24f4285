//! Table `operation_events`: append only.

use chrono::{DateTime, Utc};
use control_plane_operation::Event;
use database::OrgTransaction;
use kernel::id::{OperationId, OrganizationId};
use tokio_postgres::types::Json;
use uuid::Uuid;

use super::StoreError;
use super::statement::execute;

/// Appends. A sequence that exists is a fault: two writers were not fenced from each other.
pub async fn write(
    tx: &OrgTransaction,
    organization: OrganizationId,
    rows: &[(OperationId, Event)],
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO operation_events (operation_id, sequence, organization_id, at, type, body) \
        SELECT n.operation_id, n.sequence, $1, n.at, n.type, n.body \
        FROM unnest($2::uuid[], $3::bigint[], $4::timestamptz[], $5::text[], $6::json[]) \
        AS n (operation_id, sequence, at, type, body)";
    if rows.is_empty() {
        return Ok(());
    }
    let operation: Vec<Uuid> = rows.iter().map(|(operation, _)| operation.0).collect();
    let sequence: Vec<i64> = rows.iter().map(|(_, event)| event.sequence as i64).collect();
    let at: Vec<DateTime<Utc>> = rows.iter().map(|(_, event)| event.at).collect();
    let kind: Vec<&str> = rows.iter().map(|(_, event)| event.kind.as_str()).collect();
    let body: Vec<Json<&Event>> = rows.iter().map(|(_, event)| Json(event)).collect();
    execute(tx, SQL, &[&organization.0, &operation, &sequence, &at, &kind, &body]).await?;
    Ok(())
}
