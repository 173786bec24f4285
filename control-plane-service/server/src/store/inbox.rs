//! Table `inbox`: what operations were told by someone who did not advance them at once.

use std::collections::BTreeMap;

use contracts::ExecutionResult;
use database::OrgTransaction;
use kernel::id::{OperationId, OrganizationId};
use serde::{Deserialize, Serialize};
use tokio_postgres::types::Json;
use uuid::Uuid;

use super::StoreError;
use super::statement::{body, column, execute, query};

/// One thing that an operation was told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Told {
    /// Claims that it waits for may be free by now.
    ClaimsMoved,
    Result {
        result: Box<ExecutionResult>,
    },
}

/// Adds notices.
pub async fn write(
    tx: &OrgTransaction,
    organization: OrganizationId,
    rows: &[(OperationId, Told)],
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO inbox (organization_id, operation_id, body) \
        SELECT $1, n.operation_id, n.body FROM unnest($2::uuid[], $3::json[]) AS n (operation_id, body)";
    if rows.is_empty() {
        return Ok(());
    }
    let operation: Vec<Uuid> = rows.iter().map(|(operation, _)| operation.0).collect();
    let body: Vec<Json<&Told>> = rows.iter().map(|(_, told)| Json(told)).collect();
    execute(tx, SQL, &[&organization.0, &operation, &body]).await?;
    Ok(())
}

/// Takes everything that the (locked) operations of the transaction's organization were told, in order.
/// Outside of a transaction there is none, and nothing is taken.
pub async fn drain(tx: &OrgTransaction, operations: &[Uuid]) -> Result<BTreeMap<OperationId, Vec<Told>>, StoreError> {
    const SQL: &str = "WITH taken AS (DELETE FROM inbox WHERE operation_id = ANY($1) \
        AND organization_id = current_setting('app.organization_id')::uuid RETURNING id, operation_id, body) \
        SELECT operation_id, body FROM taken ORDER BY id";
    let mut told: BTreeMap<OperationId, Vec<Told>> = BTreeMap::new();
    for row in query(tx, SQL, &[&operations]).await? {
        let operation = OperationId(column(&row, 0, "notice")?);
        told.entry(operation).or_default().push(body(&row, 1, "notice")?);
    }
    Ok(told)
}
