//! What the nodes of a template took in its last runs, for the estimate beside a plan.
//!
//! Invariant: what is read is bounded, whatever an organization has done so far: the last few operations, of
//! each a few nodes, by index.

use std::collections::{BTreeSet, HashMap};

use control_plane_plan::Plan;
use control_plane_planning::Sample;
use sqlx::PgConnection;

/// As many of the last operations of the template are asked.
const OPERATIONS: i64 = 20;
/// As many node runs of each are looked through for nodes that are called otherwise than those planned now.
const NODE_RUNS: i64 = 200;
/// As many items of a fan-out stand for all of them.
const ITEMS: usize = 3;

/// Samples of what the nodes of `plan` took before. Only what succeeded tells how long success takes.
pub async fn samples(connection: &mut PgConnection, plan: &Plan) -> Result<Vec<Sample>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"WITH recent AS (
            SELECT id FROM operations WHERE pack = $1 AND template = $2 AND ended_at IS NOT NULL ORDER BY id DESC LIMIT $3
        ), found AS (
            SELECT run.* FROM recent CROSS JOIN LATERAL (
                SELECT operation_id, node, run, body FROM node_runs
                WHERE operation_id = recent.id AND state = 'succeeded' AND node = ANY($4)
            ) AS run
            UNION ALL
            SELECT run.* FROM recent CROSS JOIN LATERAL (
                SELECT operation_id, node, run, body FROM node_runs
                WHERE operation_id = recent.id AND state = 'succeeded' LIMIT $5
            ) AS run
        ), counted AS (
            SELECT operation_id, split_part(node, '[', 1) AS template_node, body,
                row_number() OVER (PARTITION BY operation_id, split_part(node, '[', 1) ORDER BY node, run) AS number
            FROM (SELECT DISTINCT ON (operation_id, node, run) * FROM found) AS once
        )
        SELECT operation_id AS "operation!", template_node AS "template_node!",
            extract(epoch FROM (body->>'ended_at')::timestamptz - (body->>'started_at')::timestamptz)::float8 AS "seconds?"
        FROM counted WHERE number <= $6"#,
        plan.scenario.pack,
        plan.scenario.template,
        OPERATIONS,
        &representatives(plan),
        NODE_RUNS,
        ITEMS as i64,
    )
    .fetch_all(connection)
    .await?;
    let sample = |seconds, template_node, operation: uuid::Uuid| Sample {
        template_node,
        run: operation.as_u128(),
        seconds,
    };
    Ok(rows
        .into_iter()
        .filter_map(|row| Some(sample(row.seconds?, row.template_node, row.operation)))
        .collect())
}

/// Ids of a few nodes of each template node.
fn representatives(plan: &Plan) -> Vec<String> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut chosen = BTreeSet::new();
    for node in &plan.nodes {
        let count = seen.entry(&node.template_node).or_default();
        *count += 1;
        if *count <= ITEMS {
            chosen.insert(node.id.clone());
        }
    }
    chosen.into_iter().collect()
}
