//! Reading attempts.

use chrono::{DateTime, Utc};
use contracts::{ExecutionResult, ExitReason, Isolation, JobSpec, JobType};
use database::Database;
use execution_plane_domain::attempt::Attempt;
use kernel::id::{AttemptId, OperationId, OrganizationId, RunnerId};
use uuid::Uuid;

use super::error::StoreError;
use super::words;

/// What a list tells of an attempt.
#[derive(Debug, Clone)]
pub struct Summary {
    pub id: AttemptId,
    pub operation_id: OperationId,
    pub plan_node_id: String,
    pub job_type: JobType,
    pub environment: String,
    pub attempt: Attempt,
    pub version: u64,
    pub runner_id: Option<RunnerId>,
    pub queued_at: DateTime<Utc>,
    pub leased_at: Option<DateTime<Utc>>,
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
    pub cancel_requested_at: Option<DateTime<Utc>>,
    pub reason: Option<ExitReason>,
}

/// What one attempt's page tells beyond that.
#[derive(Debug, Clone)]
pub struct Whole {
    pub summary: Summary,
    pub deadline_at: Option<DateTime<Utc>>,
    pub isolation_used: Option<Isolation>,
    pub last_sequence: u64,
    pub output_bytes: u64,
    pub spec: JobSpec,
    pub result: Option<ExecutionResult>,
}

struct Row {
    attempt_id: Uuid,
    operation_id: Uuid,
    plan_node_id: String,
    job_type: String,
    environment: String,
    state: String,
    epoch: i64,
    ran: bool,
    version: i64,
    runner_id: Option<Uuid>,
    queued_at: DateTime<Utc>,
    leased_at: Option<DateTime<Utc>>,
    started_at: Option<DateTime<Utc>>,
    finished_at: Option<DateTime<Utc>>,
    cancel_requested_at: Option<DateTime<Utc>>,
    reason: Option<String>,
}

/// Which attempts a list shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter {
    pub operation: Option<OperationId>,
    pub state: Option<execution_plane_domain::attempt::State>,
}

/// A page, the newest id first, of those before `before`.
///
/// # Errors
/// The database failed.
pub async fn list(
    database: &Database,
    organization: OrganizationId,
    filter: Filter,
    before: Option<AttemptId>,
    limit: i64,
) -> Result<Vec<Summary>, StoreError> {
    let mut transaction = database.begin(organization).await?;
    let rows = sqlx::query_as!(
        Row,
        "SELECT attempt_id, operation_id, plan_node_id, job_type, environment, state, epoch, ran, version, runner_id,
            queued_at, leased_at, started_at, finished_at, cancel_requested_at, reason
        FROM attempts
        WHERE organization_id = $1
            AND ($2::uuid IS NULL OR operation_id = $2)
            AND ($3::text IS NULL OR state = $3)
            AND ($4::uuid IS NULL OR attempt_id < $4)
        ORDER BY attempt_id DESC LIMIT $5",
        organization.as_uuid(),
        filter.operation.map(OperationId::as_uuid),
        filter.state.map(|state| state.as_str()),
        before.map(AttemptId::as_uuid),
        limit
    )
    .fetch_all(&mut *transaction)
    .await?;
    rows.into_iter().map(Row::read).collect()
}

/// One attempt.
///
/// # Errors
/// The database failed.
pub async fn get(
    database: &Database,
    organization: OrganizationId,
    id: AttemptId,
) -> Result<Option<Whole>, StoreError> {
    let mut transaction = database.begin(organization).await?;
    let row = sqlx::query!(
        r#"SELECT a.attempt_id, a.operation_id, a.plan_node_id, a.job_type, a.environment, a.state, a.epoch, a.ran,
            a.version, a.runner_id, a.queued_at, a.leased_at, a.started_at, a.finished_at, a.cancel_requested_at,
            a.reason, a.isolation_used, a.spec,
            (SELECT deadline_at FROM leases AS l
                WHERE l.organization_id = a.organization_id AND l.attempt_id = a.attempt_id) AS deadline_at,
            (SELECT body FROM results AS r
                WHERE r.organization_id = a.organization_id AND r.attempt_id = a.attempt_id) AS body,
            COALESCE((SELECT max(last_sequence) FROM output_segments AS s
                WHERE s.organization_id = a.organization_id AND s.attempt_id = a.attempt_id), 0) AS "last_sequence!",
            COALESCE((SELECT sum(byte_length) FROM output_segments AS s
                WHERE s.organization_id = a.organization_id AND s.attempt_id = a.attempt_id), 0)::bigint AS "bytes!"
        FROM attempts AS a WHERE a.organization_id = $1 AND a.attempt_id = $2"#,
        organization.as_uuid(),
        id.as_uuid()
    )
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let summary = Row {
        attempt_id: row.attempt_id,
        operation_id: row.operation_id,
        plan_node_id: row.plan_node_id,
        job_type: row.job_type,
        environment: row.environment,
        state: row.state,
        epoch: row.epoch,
        ran: row.ran,
        version: row.version,
        runner_id: row.runner_id,
        queued_at: row.queued_at,
        leased_at: row.leased_at,
        started_at: row.started_at,
        finished_at: row.finished_at,
        cancel_requested_at: row.cancel_requested_at,
        reason: row.reason,
    };
    let result = row.body.map(|body| serde_json::from_str(&body)).transpose();
    Ok(Some(Whole {
        summary: summary.read()?,
        deadline_at: row.deadline_at,
        isolation_used: row.isolation_used.map(words::isolation).transpose()?,
        last_sequence: words::count(row.last_sequence),
        output_bytes: words::count(row.bytes),
        spec: serde_json::from_str(&row.spec).map_err(StoreError::corrupt("JobSpec"))?,
        result: result.map_err(StoreError::corrupt("result"))?,
    }))
}

impl Row {
    fn read(self) -> Result<Summary, StoreError> {
        Ok(Summary {
            id: AttemptId(self.attempt_id),
            operation_id: OperationId(self.operation_id),
            plan_node_id: self.plan_node_id,
            job_type: words::job_type(&self.job_type)?,
            environment: self.environment,
            attempt: Attempt {
                state: words::state(&self.state)?,
                epoch: words::count(self.epoch),
                ran: self.ran,
            },
            version: words::count(self.version),
            runner_id: self.runner_id.map(RunnerId),
            queued_at: self.queued_at,
            leased_at: self.leased_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
            cancel_requested_at: self.cancel_requested_at,
            reason: words::reason(self.reason.as_deref())?,
        })
    }
}
