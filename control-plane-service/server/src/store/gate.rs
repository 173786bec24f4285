//! Table `gates`: every asking of every gate.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use control_plane_operation::GateId;
use control_plane_operation::row::GateRow;
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
    rows: &BTreeMap<GateId, (OperationId, GateRow)>,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO gates (id, operation_id, organization_id, node, state, opened_at, body) \
        SELECT n.id, n.operation_id, $1, n.node, n.state, n.opened_at, n.body \
        FROM unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::timestamptz[], $7::json[]) \
        AS n (id, operation_id, node, state, opened_at, body) \
        ON CONFLICT (id) DO UPDATE SET state = excluded.state, body = excluded.body";
    if rows.is_empty() {
        return Ok(());
    }
    let id: Vec<Uuid> = rows.keys().map(|id| id.0).collect();
    let operation: Vec<Uuid> = rows.values().map(|(operation, _)| operation.0).collect();
    let node: Vec<&str> = rows.values().map(|(_, row)| row.node.as_str()).collect();
    let state: Vec<&str> = rows.values().map(|(_, row)| row.state.as_str()).collect();
    let opened_at: Vec<DateTime<Utc>> = rows.values().map(|(_, row)| row.opened_at).collect();
    let body: Vec<Json<&GateRow>> = rows.values().map(|(_, row)| Json(row)).collect();
    execute(
        tx,
        SQL,
        &[&organization.0, &id, &operation, &node, &state, &opened_at, &body],
    )
    .await?;
    Ok(())
}

/// All askings, oldest first.
pub async fn of(tx: &OrgTransaction, operation: OperationId) -> Result<Vec<GateRow>, StoreError> {
    const SQL: &str = "SELECT body FROM gates WHERE operation_id = $1 ORDER BY opened_at, id";
    bodies(&query(tx, SQL, &[&operation.0]).await?, "gate")
}
