//! Table `node_runs`.

use std::collections::BTreeMap;

use control_plane_operation::PlanIndex;
use control_plane_operation::row::NodeRunRow;
use control_plane_plan::NodeKind;
use database::OrgTransaction;
use kernel::id::{OperationId, OrganizationId};
use tokio_postgres::types::Json;
use uuid::Uuid;

use super::StoreError;
use super::statement::{bodies, execute, query};

/// Operation, node, run.
pub type Key = (OperationId, String, u32);

/// Inserts or overwrites.
pub async fn write(
    tx: &OrgTransaction,
    organization: OrganizationId,
    rows: &BTreeMap<Key, NodeRunRow>,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO node_runs (operation_id, node, run, organization_id, state, body) \
        SELECT n.operation_id, n.node, n.run, $1, n.state, n.body \
        FROM unnest($2::uuid[], $3::text[], $4::int[], $5::text[], $6::json[]) AS n (operation_id, node, run, state, body) \
        ON CONFLICT (operation_id, node, run) DO UPDATE SET state = excluded.state, body = excluded.body";
    if rows.is_empty() {
        return Ok(());
    }
    let operation: Vec<Uuid> = rows.keys().map(|key| key.0.0).collect();
    let node: Vec<&str> = rows.keys().map(|key| key.1.as_str()).collect();
    let run: Vec<i32> = rows.keys().map(|key| key.2 as i32).collect();
    let state: Vec<&str> = rows.values().map(|row| row.state.as_str()).collect();
    let body: Vec<Json<&NodeRunRow>> = rows.values().map(Json).collect();
    execute(tx, SQL, &[&organization.0, &operation, &node, &run, &state, &body]).await?;
    Ok(())
}

/// Every node's row of every run.
pub async fn all_of(tx: &OrgTransaction, operation: OperationId) -> Result<Vec<NodeRunRow>, StoreError> {
    const SQL: &str = "SELECT body FROM node_runs WHERE operation_id = $1 ORDER BY run, node";
    bodies(&query(tx, SQL, &[&operation.0]).await?, "node run")
}

/// Each node's row of the highest run.
pub async fn latest_of(tx: &OrgTransaction, operation: OperationId) -> Result<Vec<NodeRunRow>, StoreError> {
    const SQL: &str =
        "SELECT DISTINCT ON (node) body, node FROM node_runs WHERE operation_id = $1 ORDER BY node, run DESC";
    bodies(&query(tx, SQL, &[&operation.0]).await?, "node run")
}

/// Each gate node's row of the highest run.
pub async fn latest_of_gates(
    tx: &OrgTransaction,
    plan: &PlanIndex,
    operation: OperationId,
) -> Result<Vec<NodeRunRow>, StoreError> {
    const SQL: &str = "SELECT DISTINCT ON (node) body, node FROM node_runs \
        WHERE operation_id = $1 AND node = ANY($2) ORDER BY node, run DESC";
    let nodes = plan.plan().nodes.iter();
    let gates: Vec<&str> = nodes
        .filter(|node| matches!(node.action, NodeKind::Gate(_)))
        .map(|node| node.id.as_str())
        .collect();
    bodies(&query(tx, SQL, &[&operation.0, &gates]).await?, "node run")
}
