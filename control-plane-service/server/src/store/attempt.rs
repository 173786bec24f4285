//! Table `attempts`: every attempt with the first result told, for ever.

use std::collections::BTreeMap;

use control_plane_operation::row::AttemptRow;
use database::OrgTransaction;
use kernel::id::{AttemptId, OperationId, OrganizationId};
use tokio_postgres::types::Json;
use uuid::Uuid;

use super::StoreError;
use super::statement::{bodies, execute, query};

/// Inserts or overwrites.
pub async fn write(
    tx: &OrgTransaction,
    organization: OrganizationId,
    rows: &BTreeMap<AttemptId, (OperationId, AttemptRow)>,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO attempts (id, operation_id, organization_id, node, run, number, state, body) \
        SELECT n.id, n.operation_id, $1, n.node, n.run, n.number, n.state, n.body \
        FROM unnest($2::uuid[], $3::uuid[], $4::text[], $5::int[], $6::int[], $7::text[], $8::json[]) \
        AS n (id, operation_id, node, run, number, state, body) \
        ON CONFLICT (id) DO UPDATE SET state = excluded.state, body = excluded.body";
    if rows.is_empty() {
        return Ok(());
    }
    let id: Vec<Uuid> = rows.keys().map(|id| id.0).collect();
    let operation: Vec<Uuid> = rows.values().map(|(operation, _)| operation.0).collect();
    let node: Vec<&str> = rows.values().map(|(_, row)| row.node.as_str()).collect();
    let run: Vec<i32> = rows.values().map(|(_, row)| row.run as i32).collect();
    let number: Vec<i32> = rows.values().map(|(_, row)| row.number as i32).collect();
    let state: Vec<&str> = rows.values().map(|(_, row)| row.state.as_str()).collect();
    let body: Vec<Json<&AttemptRow>> = rows.values().map(|(_, row)| Json(row)).collect();
    execute(
        tx,
        SQL,
        &[&organization.0, &id, &operation, &node, &run, &number, &state, &body],
    )
    .await?;
    Ok(())
}

/// All attempts, in the order of nodes, runs and numbers.
pub async fn of(tx: &OrgTransaction, operation: OperationId) -> Result<Vec<AttemptRow>, StoreError> {
    const SQL: &str = "SELECT body FROM attempts WHERE operation_id = $1 ORDER BY node, run, number";
    bodies(&query(tx, SQL, &[&operation.0]).await?, "attempt")
}
