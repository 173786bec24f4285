//! Node runs with their attempts, in plan order.

use std::collections::HashMap;

use control_plane_api::{AttemptView, NodeRun, NodeRunState};
use control_plane_operation::NodeState;
use control_plane_operation::row::{AttemptRow, NodeRunRow, NodeWait};
use control_plane_plan::{NodeKind, Plan, PlanNode};
use kernel::id::OperationId;
use sqlx::PgConnection;
use sqlx::types::Json;

use crate::store::StoreError;

/// Node runs of the plan's nodes from position `from` on, up to `limit`, each with its position.
pub async fn page(
    connection: &mut PgConnection,
    id: OperationId,
    plan: &Plan,
    state: Option<NodeRunState>,
    from: usize,
    limit: usize,
) -> Result<Vec<(usize, NodeRun)>, StoreError> {
    let mut rows = latest(connection, id, state).await?;
    let chosen: Vec<(usize, &PlanNode, NodeRunRow)> = plan
        .nodes
        .iter()
        .enumerate()
        .skip(from)
        .filter_map(|(position, node)| Some((position, node, rows.remove(&node.id)?)))
        .take(limit)
        .collect();
    let nodes: Vec<String> = chosen.iter().map(|(_, node, _)| node.id.clone()).collect();
    let mut attempts = attempts(connection, id, &nodes).await?;
    Ok(chosen
        .into_iter()
        .map(|(position, node, row)| {
            let attempts = attempts.remove(&node.id).unwrap_or_default();
            (position, view(node, row, attempts))
        })
        .collect())
}

async fn latest(
    connection: &mut PgConnection,
    id: OperationId,
    state: Option<NodeRunState>,
) -> Result<HashMap<String, NodeRunRow>, StoreError> {
    let rows = sqlx::query!(
        r#"SELECT node, body AS "body: Json<NodeRunRow>" FROM (SELECT DISTINCT ON (node) node, state, body FROM node_runs
        WHERE operation_id = $1 ORDER BY node, run DESC) AS latest WHERE $2::text IS NULL OR state = $2"#,
        id.0,
        state.map(NodeRunState::as_str),
    )
    .fetch_all(connection)
    .await
    .map_err(database::DatabaseError::from)?;
    Ok(rows.into_iter().map(|row| (row.node, row.body.0)).collect())
}

async fn attempts(
    connection: &mut PgConnection,
    id: OperationId,
    nodes: &[String],
) -> Result<HashMap<String, Vec<AttemptRow>>, StoreError> {
    let rows = sqlx::query!(
        r#"SELECT node, body AS "body: Json<AttemptRow>" FROM attempts
        WHERE operation_id = $1 AND node = ANY($2) ORDER BY node, run, number"#,
        id.0,
        nodes,
    )
    .fetch_all(connection)
    .await
    .map_err(database::DatabaseError::from)?;
    let mut found: HashMap<String, Vec<AttemptRow>> = HashMap::new();
    for row in rows {
        found.entry(row.node).or_default().push(row.body.0);
    }
    Ok(found)
}

fn view(node: &PlanNode, row: NodeRunRow, attempts: Vec<AttemptRow>) -> NodeRun {
    let (kind, job_type) = match &node.action {
        NodeKind::Job(job) => ("job", Some(job.job_type)),
        NodeKind::Gate(_) => ("gate", None),
        NodeKind::ResourceUpdate(_) => ("resource_update", None),
        NodeKind::Join => ("join", None),
    };
    NodeRun {
        node_id: row.node,
        template_node: node.template_node.clone(),
        title: node.title.clone(),
        kind: kind.to_owned(),
        job_type,
        item: node.item.as_ref().map(|item| item.key.clone()),
        item_uid: node.item.as_ref().and_then(|item| item.uid),
        state: state_of(row.state),
        reason: row.reason.map(|reason| reason.as_str().to_owned()),
        run: row.run,
        plan_revision: row.plan_revision,
        message: row.message.or_else(|| row.wait.and_then(waits)),
        started_at: row.started_at,
        ended_at: row.ended_at,
        attempts: attempts.into_iter().map(attempt_view).collect(),
    }
}

fn waits(wait: NodeWait) -> Option<String> {
    match wait {
        NodeWait::Retry { failure, .. } | NodeWait::Intervention { failure } => Some(failure.message),
        _ => None,
    }
}

fn attempt_view(row: AttemptRow) -> AttemptView {
    let result = row.result;
    AttemptView {
        attempt_id: row.id,
        run: row.run,
        number: row.number,
        state: row.state.as_str().to_owned(),
        dispatched_at: row.submitted_at,
        status: result.as_ref().map(|result| result.status),
        started_at: result.as_ref().and_then(|result| result.started_at).or(row.started_at),
        runner: row.runner,
        finished_at: result.as_ref().map(|result| result.finished_at).or(row.ended_at),
        exit_summary: result.as_ref().map(|result| result.exit_summary.clone()),
        job_started: result.as_ref().and_then(|result| result.job_started),
        reason: result.as_ref().and_then(|result| result.reason),
        late: row.late,
        artifacts: result
            .as_ref()
            .map(|result| result.artifacts.clone())
            .unwrap_or_default(),
        evidence: result
            .as_ref()
            .map(|result| result.evidence.clone())
            .unwrap_or_default(),
        raw_logs: result.map(|result| result.raw_logs).unwrap_or_default(),
    }
}

/// The state on the wire.
pub const fn state_of(state: NodeState) -> NodeRunState {
    match state {
        NodeState::Pending => NodeRunState::Pending,
        NodeState::Ready => NodeRunState::Ready,
        NodeState::Waiting => NodeRunState::Waiting,
        NodeState::Dispatched => NodeRunState::Dispatched,
        NodeState::Running => NodeRunState::Running,
        NodeState::Verifying => NodeRunState::Verifying,
        NodeState::Succeeded => NodeRunState::Succeeded,
        NodeState::Failed => NodeRunState::Failed,
        NodeState::Skipped => NodeRunState::Skipped,
        NodeState::Cancelled => NodeRunState::Cancelled,
        NodeState::TimedOut => NodeRunState::TimedOut,
        NodeState::Unresolved => NodeRunState::Unresolved,
    }
}
