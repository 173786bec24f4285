//! One operation, whole, as read within a transaction: also within the one that has just changed it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use control_plane_api::{
    NodeRunState, Operation, OperationCounts, OperationPlan, OperationState, OperationSummary, Overlap, RunView,
    WaitingFor,
};
use control_plane_operation::row::{ClaimsState, GateRow, NodeRunRow, NodeWait, Progress, RunFailure, RunRow};
use control_plane_operation::{Blocker, OperationStatus, RunEnd};
use database::OrgTransaction;
use kernel::Sha256Digest;
use kernel::id::{OperationId, PlanId};
use tokio_postgres::Row;
use tokio_postgres::types::Json;

use crate::store::StoreError;
use crate::store::statement::{bodies, body, column, query};
use crate::store::{claim, run};

/// The operation's own row as read for people.
struct Head {
    summary: OperationSummary,
    status: OperationStatus,
    reason: String,
    plan_revision: u32,
    progress: Progress,
    last_event: i64,
}

const HEAD: &str = "SELECT id, status, revision, run, pack, template, environment, requester, created_at, last_event_at, \
    ended_at, labels, reason, plan_revision, progress, last_event FROM operations WHERE id = $1";

/// Reads an operation of the organization.
pub async fn find(tx: &OrgTransaction, id: OperationId) -> Result<Option<Operation>, StoreError> {
    let (head, runs, counts, gates, held, silent) = futures::try_join!(
        head(tx, id),
        run::of(tx, id),
        counts(tx, id),
        open_gates(tx, id),
        waiting_nodes(tx, id),
        silent_dependencies(tx, id),
    )?;
    let Some(head) = head else { return Ok(None) };
    let plan = plan(tx, id, head.plan_revision, &head.summary.environment).await?;
    let blockers = blockers(tx, &head).await?;
    let waiting_for = waiting_for(&head, &blockers, gates, held, silent);
    let message = message(&head);
    Ok(Some(Operation {
        handled: is_handled(&head),
        on_overlap: if head.progress.wait_for_claims {
            Overlap::Queue
        } else {
            Overlap::Refuse
        },
        summary: head.summary,
        reason: head.reason,
        plan,
        counts,
        waiting_for,
        message,
        runs: runs.into_iter().map(run_view).collect(),
        last_event: head.last_event,
    }))
}

/// The state on the wire: what a waiting operation waits for is told apart from it.
pub const fn state_of(status: OperationStatus) -> OperationState {
    match status {
        OperationStatus::Pending => OperationState::Pending,
        OperationStatus::Validating => OperationState::Validating,
        OperationStatus::Running => OperationState::Running,
        OperationStatus::Paused => OperationState::Paused,
        OperationStatus::WaitingGate | OperationStatus::WaitingIntervention | OperationStatus::WaitingClaim => {
            OperationState::Waiting
        }
        OperationStatus::Cancelling => OperationState::Cancelling,
        OperationStatus::Unresolved => OperationState::Unresolved,
        OperationStatus::Succeeded => OperationState::Succeeded,
        OperationStatus::Failed => OperationState::Failed,
        OperationStatus::Cancelled => OperationState::Cancelled,
    }
}

/// Reads a status column.
pub fn status(word: &str) -> Result<OperationStatus, StoreError> {
    OperationStatus::parse(word)
        .ok_or_else(|| StoreError::corrupt("operation")(format!("unknown status {word:?}").into()))
}

async fn head(tx: &OrgTransaction, id: OperationId) -> Result<Option<Head>, StoreError> {
    query(tx, HEAD, &[&id.0]).await?.first().map(read_head).transpose()
}

fn read_head(row: &Row) -> Result<Head, StoreError> {
    let what = "operation";
    let status = status(&column::<String>(row, 1, what)?)?;
    let pack: String = column(row, 4, what)?;
    let template: String = column(row, 5, what)?;
    let Json(labels) = column::<Json<BTreeMap<String, String>>>(row, 11, what)?;
    Ok(Head {
        summary: OperationSummary {
            id: OperationId(column(row, 0, what)?),
            state: state_of(status),
            version: column(row, 2, what)?,
            run: column::<i32>(row, 3, what)? as u32,
            template: format!("{pack}/{template}"),
            environment: column(row, 6, what)?,
            requested_by: column(row, 7, what)?,
            created_at: column(row, 8, what)?,
            updated_at: column(row, 9, what)?,
            ended_at: column(row, 10, what)?,
            labels,
        },
        status,
        reason: column(row, 12, what)?,
        plan_revision: column::<i32>(row, 13, what)? as u32,
        progress: body(row, 14, what)?,
        last_event: column(row, 15, what)?,
    })
}

async fn plan(
    tx: &OrgTransaction,
    id: OperationId,
    revision: u32,
    environment: &str,
) -> Result<OperationPlan, StoreError> {
    const SQL: &str = "SELECT plan_id, digest, scenario FROM plan_revisions WHERE operation_id = $1 AND revision = $2";
    let rows = query(tx, SQL, &[&id.0, &(revision as i32)]).await?;
    let row = rows
        .first()
        .ok_or_else(|| StoreError::corrupt("operation")("its plan is missing".into()))?;
    let digest: Vec<u8> = column(row, 1, "plan")?;
    let digest: [u8; 32] = digest
        .try_into()
        .map_err(|_| StoreError::corrupt("plan digest")("it is not 32 bytes long".into()))?;
    Ok(OperationPlan {
        plan_id: PlanId(column(row, 0, "plan")?),
        revision,
        digest: Sha256Digest::from_bytes(digest),
        scenario: body(row, 2, "plan")?,
        environment: environment.to_owned(),
    })
}

async fn counts(tx: &OrgTransaction, id: OperationId) -> Result<OperationCounts, StoreError> {
    const SQL: &str = "SELECT state, count(*) FROM (SELECT DISTINCT ON (node) state FROM node_runs \
        WHERE operation_id = $1 ORDER BY node, run DESC) AS latest GROUP BY state";
    let mut counts = OperationCounts::default();
    for row in query(tx, SQL, &[&id.0]).await? {
        let word: String = column(&row, 0, "node run")?;
        let count = column::<i64>(&row, 1, "node run")? as u64;
        counts.nodes += count;
        if let Some(state) = NodeRunState::ALL.iter().find(|state| state.as_str() == word) {
            counts.by_state.insert(*state, count);
        }
    }
    Ok(counts)
}

async fn open_gates(tx: &OrgTransaction, id: OperationId) -> Result<Vec<GateRow>, StoreError> {
    const SQL: &str = "SELECT body FROM gates WHERE operation_id = $1 AND state = 'open' ORDER BY opened_at, id";
    bodies(&query(tx, SQL, &[&id.0]).await?, "gate")
}

async fn waiting_nodes(tx: &OrgTransaction, id: OperationId) -> Result<Vec<NodeRunRow>, StoreError> {
    const SQL: &str = "SELECT body FROM node_runs WHERE operation_id = $1 AND state IN ('waiting', 'unresolved') \
        ORDER BY node LIMIT 100";
    bodies(&query(tx, SQL, &[&id.0]).await?, "node run")
}

async fn silent_dependencies(tx: &OrgTransaction, id: OperationId) -> Result<Vec<WaitingFor>, StoreError> {
    const SQL: &str = "SELECT dependency, min(failing_since), max(tries), max(last_error) FROM effects \
        WHERE operation_id = $1 AND failing_since IS NOT NULL GROUP BY dependency ORDER BY dependency";
    query(tx, SQL, &[&id.0])
        .await?
        .iter()
        .map(|row| {
            Ok(WaitingFor::Dependency {
                name: column(row, 0, "effect")?,
                since: column(row, 1, "effect")?,
                tries: column::<i32>(row, 2, "effect")? as u32,
                last_error: column(row, 3, "effect")?,
            })
        })
        .collect()
}

/// Who stands in the way now: who was ahead in the queue may hold by now, which the operation was not told.
async fn blockers(tx: &OrgTransaction, head: &Head) -> Result<Vec<Blocker>, StoreError> {
    match &head.progress.claims {
        ClaimsState::Wanted { request, .. } if !head.status.is_end() => claim::blockers(tx, *request).await,
        _ => Ok(Vec::new()),
    }
}

fn waiting_for(
    head: &Head,
    blockers: &[Blocker],
    gates: Vec<GateRow>,
    nodes: Vec<NodeRunRow>,
    silent: Vec<WaitingFor>,
) -> Vec<WaitingFor> {
    if head.status.is_end() {
        // The finalizers of a finished run may still be on their way.
        return silent;
    }
    let mut waiting: Vec<WaitingFor> = Vec::new();
    if let ClaimsState::Wanted { .. } = &head.progress.claims {
        waiting.extend(blockers.iter().map(|blocker| {
            WaitingFor::Claim {
                resource_id: blocker.resource_id.clone(),
                uid: blocker.uid,
                mode: blocker.mode,
                holder: blocker.operation_id,
                since: blocker.since,
                holds: blocker.holds,
                why: if blocker.holds {
                    "it holds the resource"
                } else {
                    "it is ahead in the queue"
                }
                .to_owned(),
            }
        }));
    }
    waiting.extend(gates.into_iter().map(|gate| WaitingFor::Gate {
        gate_id: gate.id.0,
        node_id: gate.node,
        role: gate.role,
        excluded: gate.excluded,
        since: gate.opened_at,
    }));
    waiting.extend(
        nodes
            .into_iter()
            .filter_map(|node| waiting_node(node, head.summary.updated_at)),
    );
    waiting.extend(silent);
    waiting
}

fn waiting_node(node: NodeRunRow, updated_at: DateTime<Utc>) -> Option<WaitingFor> {
    let since = node.ended_at.or(node.started_at).unwrap_or(updated_at);
    if node.state == control_plane_operation::NodeState::Unresolved {
        return Some(WaitingFor::Intervention {
            node_id: node.node,
            why: node.message.unwrap_or_else(|| "its outcome is not known".to_owned()),
            unresolved: true,
            choices: vec!["resolve".to_owned(), "cancel".to_owned()],
            since,
        });
    }
    match node.wait? {
        NodeWait::Intervention { failure } => Some(WaitingFor::Intervention {
            node_id: node.node,
            why: failure.message,
            unresolved: false,
            choices: ["retry", "skip", "resolve", "cancel"].map(str::to_owned).to_vec(),
            since,
        }),
        NodeWait::Retry { at, .. } | NodeWait::ValidationAgain { at, .. } => Some(WaitingFor::Time {
            node_id: node.node,
            until: at,
        }),
        NodeWait::Gate { .. } | NodeWait::Validation { .. } => None,
    }
}

fn message(head: &Head) -> Option<String> {
    match &head.progress.failure {
        Some(RunFailure::ClaimsRefused { blockers }) => {
            let held: Vec<String> = blockers
                .iter()
                .map(|blocker| match blocker.holds {
                    true => format!("operation {} holds {}", blocker.operation_id, blocker.resource_id),
                    false => format!(
                        "operation {} is ahead in the queue for {}",
                        blocker.operation_id, blocker.resource_id
                    ),
                })
                .collect();
            Some(format!("claims were refused: {}", held.join(", ")))
        }
        Some(RunFailure::BindingsMoved { moved }) => {
            let moved: Vec<String> = moved
                .iter()
                .map(|moved| match (moved.gone, moved.parts.is_empty()) {
                    (true, _) => format!("{} (gone)", moved.resource_id),
                    (false, true) => moved.resource_id.to_string(),
                    (false, false) => format!("{} ({})", moved.resource_id, moved.parts.join(", ")),
                })
                .collect();
            Some(format!("moved since the plan was made: {}", moved.join(", ")))
        }
        Some(RunFailure::LeftOut(left_out)) => Some(left_out.to_string()),
        None => head
            .progress
            .stopped_by
            .as_ref()
            .map(|node| format!("stopped by the failure of {node}")),
    }
}

fn is_handled(head: &Head) -> bool {
    head.status == OperationStatus::Failed && head.progress.stopped_by.is_none() && head.progress.failure.is_none()
}

fn run_view(row: RunRow) -> RunView {
    RunView {
        number: row.number,
        started_at: row.opened_at,
        ended_at: row.ended_at,
        end: row.end.map(|end| match end {
            RunEnd::Succeeded => OperationState::Succeeded,
            RunEnd::Failed => OperationState::Failed,
            RunEnd::Cancelled => OperationState::Cancelled,
        }),
        started_by: row.opened_by,
    }
}
