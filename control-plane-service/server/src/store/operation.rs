//! Table `operations`: the row that fences everything else of an operation.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use control_plane_operation::OperationStatus;
use control_plane_operation::row::{OperationRow, Progress};
use database::OrgTransaction;
use kernel::id::{OperationId, OrganizationId, PlanId};
use tokio_postgres::Row;
use tokio_postgres::types::Json;
use uuid::Uuid;

use super::StoreError;
use super::statement::{body, column, execute, query};

/// What an operation is called and was asked with; written once.
#[derive(Debug, Clone)]
pub struct Request {
    pub plan_id: PlanId,
    pub pack: String,
    pub pack_version: String,
    pub template: String,
    pub environment: String,
    pub reason: String,
    pub labels: BTreeMap<String, String>,
}

/// A locked operation: the revision that its row has, and the database's time.
#[derive(Debug, Clone, Copy)]
pub struct Locked {
    pub id: OperationId,
    pub revision: u64,
    pub now: DateTime<Utc>,
}

/// Locks the operations of the organization that exist, in the order of their ids, until the
/// transaction ends. The lock is weaker than a deletion's, so that foreign keys do not wait for it.
pub async fn lock(tx: &OrgTransaction, ids: &[Uuid]) -> Result<Vec<Locked>, StoreError> {
    const SQL: &str =
        "SELECT id, revision, clock_timestamp() FROM operations WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE";
    query(tx, SQL, &[&ids])
        .await?
        .iter()
        .map(|row| {
            Ok(Locked {
                id: OperationId(column(row, 0, "operation")?),
                revision: number(column::<i64>(row, 1, "operation")?)?,
                now: column(row, 2, "operation")?,
            })
        })
        .collect()
}

/// The database's time.
pub async fn now(tx: &OrgTransaction) -> Result<DateTime<Utc>, StoreError> {
    let rows = query(tx, "SELECT clock_timestamp()", &[]).await?;
    let row = rows
        .first()
        .ok_or_else(|| StoreError::corrupt("time")("no row".into()))?;
    column(row, 0, "time")
}

/// Adds a new operation. `false`: its plan is carried out already.
pub async fn insert(tx: &OrgTransaction, row: &OperationRow, request: &Request) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO operations (id, organization_id, plan_id, pack, pack_version, template, environment, \
        requester, reason, labels, status, run, plan_revision, revision, last_event, last_event_at, progress, created_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18) \
        ON CONFLICT ON CONSTRAINT operations_plan_carried_out_once DO NOTHING";
    let inserted = execute(
        tx,
        SQL,
        &[
            &row.id.0,
            &row.organization_id.0,
            &request.plan_id.0,
            &request.pack,
            &request.pack_version,
            &request.template,
            &request.environment,
            &row.requester,
            &request.reason,
            &Json(&request.labels),
            &row.status.as_str(),
            &(row.run as i32),
            &(row.plan_revision as i32),
            &(row.revision as i64),
            &(row.last_event as i64),
            &row.last_event_at,
            &Json(&row.progress),
            &row.created_at,
        ],
    )
    .await?;
    Ok(inserted == 1)
}

/// Overwrites rows that exist.
pub async fn write(tx: &OrgTransaction, rows: &BTreeMap<OperationId, OperationRow>) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE operations o SET status = n.status, run = n.run, plan_revision = n.plan_revision, \
        revision = n.revision, last_event = n.last_event, last_event_at = n.last_event_at, progress = n.progress, \
        ended_at = n.ended_at \
        FROM unnest($1::uuid[], $2::text[], $3::int[], $4::int[], $5::bigint[], $6::bigint[], $7::timestamptz[], \
        $8::json[], $9::timestamptz[]) \
        AS n (id, status, run, plan_revision, revision, last_event, last_event_at, progress, ended_at) \
        WHERE o.id = n.id";
    if rows.is_empty() {
        return Ok(());
    }
    let rows: Vec<&OperationRow> = rows.values().collect();
    let ids: Vec<Uuid> = rows.iter().map(|row| row.id.0).collect();
    let status: Vec<&str> = rows.iter().map(|row| row.status.as_str()).collect();
    let run: Vec<i32> = rows.iter().map(|row| row.run as i32).collect();
    let plan_revision: Vec<i32> = rows.iter().map(|row| row.plan_revision as i32).collect();
    let revision: Vec<i64> = rows.iter().map(|row| row.revision as i64).collect();
    let last_event: Vec<i64> = rows.iter().map(|row| row.last_event as i64).collect();
    let last_event_at: Vec<DateTime<Utc>> = rows.iter().map(|row| row.last_event_at).collect();
    let progress: Vec<Json<&Progress>> = rows.iter().map(|row| Json(&row.progress)).collect();
    let ended_at: Vec<Option<DateTime<Utc>>> = rows
        .iter()
        .map(|row| row.status.is_end().then_some(row.last_event_at))
        .collect();
    execute(
        tx,
        SQL,
        &[
            &ids,
            &status,
            &run,
            &plan_revision,
            &revision,
            &last_event,
            &last_event_at,
            &progress,
            &ended_at,
        ],
    )
    .await?;
    Ok(())
}

/// Reads one operation of the organization.
pub async fn find(tx: &OrgTransaction, id: OperationId) -> Result<Option<OperationRow>, StoreError> {
    const SQL: &str = "SELECT id, organization_id, requester, created_at, status, run, plan_revision, revision, last_event, \
        last_event_at, progress FROM operations WHERE id = $1";
    query(tx, SQL, &[&id.0]).await?.first().map(read).transpose()
}

fn read(row: &Row) -> Result<OperationRow, StoreError> {
    let what = "operation";
    let word: String = column(row, 4, what)?;
    Ok(OperationRow {
        id: OperationId(column(row, 0, what)?),
        organization_id: OrganizationId(column(row, 1, what)?),
        requester: column(row, 2, what)?,
        created_at: column(row, 3, what)?,
        status: OperationStatus::parse(&word)
            .ok_or_else(|| StoreError::corrupt(what)(format!("unknown status {word:?}").into()))?,
        run: number(column::<i32>(row, 5, what)?)?,
        plan_revision: number(column::<i32>(row, 6, what)?)?,
        revision: number(column::<i64>(row, 7, what)?)?,
        last_event: number(column::<i64>(row, 8, what)?)?,
        last_event_at: column(row, 9, what)?,
        progress: body(row, 10, what)?,
    })
}

fn number<T, U>(value: T) -> Result<U, StoreError>
where
    U: TryFrom<T>,
    U::Error: std::error::Error + Send + Sync + 'static,
{
    U::try_from(value).map_err(|error| StoreError::corrupt("number")(Box::new(error)))
}
