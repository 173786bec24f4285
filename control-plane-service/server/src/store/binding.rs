//! Table `operation_bindings`.

use std::collections::BTreeMap;

use control_plane_operation::row::BindingRow;
use database::OrgTransaction;
use kernel::id::{OperationId, OrganizationId, ResourceUid};
use tokio_postgres::types::Json;
use uuid::Uuid;

use super::StoreError;
use super::statement::{bodies, execute, query};

/// Inserts or overwrites.
pub async fn write(
    tx: &OrgTransaction,
    organization: OrganizationId,
    rows: &BTreeMap<(OperationId, String, ResourceUid), BindingRow>,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO operation_bindings (operation_id, slot, uid, organization_id, body) \
        SELECT n.operation_id, n.slot, n.uid, $1, n.body \
        FROM unnest($2::uuid[], $3::text[], $4::uuid[], $5::json[]) AS n (operation_id, slot, uid, body) \
        ON CONFLICT (operation_id, slot, uid) DO UPDATE SET body = excluded.body";
    if rows.is_empty() {
        return Ok(());
    }
    let operation: Vec<Uuid> = rows.keys().map(|(operation, _, _)| operation.0).collect();
    let slot: Vec<&str> = rows.keys().map(|(_, slot, _)| slot.as_str()).collect();
    let uid: Vec<Uuid> = rows.keys().map(|(_, _, uid)| uid.0).collect();
    let body: Vec<Json<&BindingRow>> = rows.values().map(Json).collect();
    execute(tx, SQL, &[&organization.0, &operation, &slot, &uid, &body]).await?;
    Ok(())
}

/// All of the operation, by slot and uid.
pub async fn of(tx: &OrgTransaction, operation: OperationId) -> Result<Vec<BindingRow>, StoreError> {
    const SQL: &str = "SELECT body FROM operation_bindings WHERE operation_id = $1 ORDER BY slot, uid";
    bodies(&query(tx, SQL, &[&operation.0]).await?, "binding")
}
