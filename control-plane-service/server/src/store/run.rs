//! Table `operation_runs`.

use std::collections::BTreeMap;

use control_plane_operation::row::RunRow;
use database::OrgTransaction;
use kernel::id::{OperationId, OrganizationId};
use tokio_postgres::types::Json;
use uuid::Uuid;

use super::StoreError;
use super::statement::{bodies, execute, query};

/// Inserts or overwrites.
pub async fn write(
    tx: &OrgTransaction,
    organization: OrganizationId,
    rows: &BTreeMap<(OperationId, u32), RunRow>,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO operation_runs (operation_id, number, organization_id, body) \
        SELECT n.operation_id, n.number, $1, n.body FROM unnest($2::uuid[], $3::int[], $4::json[]) AS n (operation_id, number, body) \
        ON CONFLICT (operation_id, number) DO UPDATE SET body = excluded.body";
    if rows.is_empty() {
        return Ok(());
    }
    let operation: Vec<Uuid> = rows.keys().map(|(operation, _)| operation.0).collect();
    let number: Vec<i32> = rows.keys().map(|(_, number)| *number as i32).collect();
    let body: Vec<Json<&RunRow>> = rows.values().map(Json).collect();
    execute(tx, SQL, &[&organization.0, &operation, &number, &body]).await?;
    Ok(())
}

/// All runs, oldest first.
pub async fn of(tx: &OrgTransaction, operation: OperationId) -> Result<Vec<RunRow>, StoreError> {
    const SQL: &str = "SELECT body FROM operation_runs WHERE operation_id = $1 ORDER BY number";
    bodies(&query(tx, SQL, &[&operation.0]).await?, "run")
}
