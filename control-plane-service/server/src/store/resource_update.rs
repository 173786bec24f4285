//! Table `resource_updates`: every resource update command, for ever.

use std::collections::BTreeMap;

use control_plane_operation::row::UpdateRow;
use database::OrgTransaction;
use kernel::id::{CommandId, OperationId, OrganizationId};
use tokio_postgres::types::Json;
use uuid::Uuid;

use super::StoreError;
use super::statement::{bodies, execute, query};

/// Inserts or overwrites.
pub async fn write(
    tx: &OrgTransaction,
    organization: OrganizationId,
    rows: &BTreeMap<CommandId, (OperationId, UpdateRow)>,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO resource_updates (command_id, operation_id, organization_id, node, state, body) \
        SELECT n.command_id, n.operation_id, $1, n.node, n.state, n.body \
        FROM unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::json[]) AS n (command_id, operation_id, node, state, body) \
        ON CONFLICT (command_id) DO UPDATE SET state = excluded.state, body = excluded.body";
    if rows.is_empty() {
        return Ok(());
    }
    let id: Vec<Uuid> = rows.keys().map(|id| id.0).collect();
    let operation: Vec<Uuid> = rows.values().map(|(operation, _)| operation.0).collect();
    let node: Vec<&str> = rows.values().map(|(_, row)| row.node.as_str()).collect();
    let state: Vec<&str> = rows.values().map(|(_, row)| row.state.as_str()).collect();
    let body: Vec<Json<&UpdateRow>> = rows.values().map(|(_, row)| Json(row)).collect();
    execute(tx, SQL, &[&organization.0, &id, &operation, &node, &state, &body]).await?;
    Ok(())
}

/// All of the operation.
pub async fn of(tx: &OrgTransaction, operation: OperationId) -> Result<Vec<UpdateRow>, StoreError> {
    const SQL: &str = "SELECT body FROM resource_updates WHERE operation_id = $1 ORDER BY command_id";
    bodies(&query(tx, SQL, &[&operation.0]).await?, "resource update")
}
