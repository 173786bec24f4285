//! Table `interventions`: the answer to every command, for ever.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use control_plane_operation::InterventionId;
use control_plane_operation::row::CommandRow;
use database::OrgTransaction;
use kernel::Sha256Digest;
use kernel::id::{OperationId, OrganizationId};
use tokio_postgres::types::Json;
use uuid::Uuid;

use super::StoreError;
use super::statement::{bodies, execute, query};

/// Adds answers; `digests` says what body each command came with.
pub async fn write(
    tx: &OrgTransaction,
    organization: OrganizationId,
    rows: &BTreeMap<(OperationId, InterventionId), CommandRow>,
    digests: &BTreeMap<InterventionId, Sha256Digest>,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO interventions (operation_id, id, organization_id, at, request_digest, body) \
        SELECT n.operation_id, n.id, $1, n.at, n.request_digest, n.body \
        FROM unnest($2::uuid[], $3::uuid[], $4::timestamptz[], $5::bytea[], $6::json[]) \
        AS n (operation_id, id, at, request_digest, body) \
        ON CONFLICT (operation_id, id) DO NOTHING";
    if rows.is_empty() {
        return Ok(());
    }
    let operation: Vec<Uuid> = rows.keys().map(|(operation, _)| operation.0).collect();
    let id: Vec<Uuid> = rows.keys().map(|(_, id)| id.0).collect();
    let at: Vec<DateTime<Utc>> = rows.values().map(|row| row.at).collect();
    let digest: Vec<&[u8]> = rows
        .keys()
        .map(|(_, id)| digests.get(id).map_or(&[][..], |digest| digest.as_bytes()))
        .collect();
    let body: Vec<Json<&CommandRow>> = rows.values().map(Json).collect();
    execute(tx, SQL, &[&organization.0, &operation, &id, &at, &digest, &body]).await?;
    Ok(())
}

/// All of the operation, oldest first.
pub async fn of(tx: &OrgTransaction, operation: OperationId) -> Result<Vec<CommandRow>, StoreError> {
    const SQL: &str = "SELECT body FROM interventions WHERE operation_id = $1 ORDER BY at, id";
    bodies(&query(tx, SQL, &[&operation.0]).await?, "intervention")
}
