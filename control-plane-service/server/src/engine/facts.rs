//! Facts about operations for everyone else, in the same transaction as what they tell of: one for each
//! operation that a turn changed, with the node runs that changed.

use database::OrgTransaction;
use kernel::id::OrganizationId;
use outbox::NewEvent;
use serde::Serialize;
use uuid::Uuid;

use super::EngineError;
use crate::store::StoreError;
use crate::store::writes::Writes;

/// More node runs than this are counted, not listed.
const LISTED: usize = 200;
/// The kind of the fact.
const CHANGED: &str = "operation.changed";

#[derive(Serialize)]
struct Changed<'a> {
    operation_id: kernel::id::OperationId,
    status: &'a str,
    run: u32,
    plan_revision: u32,
    revision: u64,
    last_event: u64,
    changed_node_runs: usize,
    node_runs: Vec<ChangedNode<'a>>,
}

#[derive(Serialize)]
struct ChangedNode<'a> {
    node_id: &'a str,
    state: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

/// Appends the facts of a turn to the outbox.
pub async fn append(tx: &OrgTransaction, organization: OrganizationId, writes: &Writes) -> Result<(), EngineError> {
    let mut facts = Vec::new();
    for row in writes.changed_operations() {
        let node_runs = writes.changed_node_runs(row.id).take(LISTED).map(|node| ChangedNode {
            node_id: &node.node,
            state: node.state.as_str(),
            reason: node.reason.map(control_plane_operation::NodeReason::as_str),
        });
        let changed = Changed {
            operation_id: row.id,
            status: row.status.as_str(),
            run: row.run,
            plan_revision: row.plan_revision,
            revision: row.revision,
            last_event: row.last_event,
            changed_node_runs: writes.changed_node_runs(row.id).count(),
            node_runs: node_runs.collect(),
        };
        let payload = serde_json::to_string(&changed).map_err(|error| StoreError::corrupt("fact")(Box::new(error)))?;
        facts.push(NewEvent {
            organization,
            key: row.id.to_string(),
            version: i64::try_from(row.revision).unwrap_or(i64::MAX),
            kind: CHANGED.to_owned(),
            event_id: Uuid::now_v7(),
            payload,
            occurred_at: row.last_event_at,
            traceparent: None,
        });
    }
    Ok(outbox::append(tx, &facts).await?)
}
