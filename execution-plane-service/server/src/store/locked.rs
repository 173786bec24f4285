//! Attempts held by row locks while a transaction decides over them.
//!
//! The order is the same everywhere: attempts first, then leases, each by id; so transactions wait
//! for one another and never in a circle.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use contracts::{ExitReason, Isolation};
use database::OrgTransaction;
use execution_plane_domain::attempt::Attempt;
use execution_plane_domain::ended::Subject;
use kernel::id::{AttemptId, OperationId, OrganizationId, RunnerId};
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::StoreError;
use super::{statements, words};

const ATTEMPTS: &str = "SELECT attempt_id, state, epoch, ran, operation_id, plan_node_id, runner_id, started_at,
        cancel_reason, clock_timestamp(), version, isolation
    FROM attempts WHERE organization_id = $1 AND attempt_id = ANY ($2::uuid[])
    ORDER BY attempt_id FOR NO KEY UPDATE";
const LEASES: &str = "SELECT attempt_id, session, deadline_at
    FROM leases WHERE organization_id = $1 AND attempt_id = ANY ($2::uuid[])
    ORDER BY attempt_id FOR UPDATE";
const OUTPUTS: &str = "SELECT id, s.last_sequence, s.byte_offset + s.byte_length
    FROM unnest($2::uuid[]) AS id
    CROSS JOIN LATERAL (SELECT last_sequence, byte_offset, byte_length FROM output_segments
        WHERE organization_id = $1 AND attempt_id = id ORDER BY first_sequence DESC LIMIT 1) AS s";

/// How much output is durable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Output {
    pub last_sequence: u64,
    pub bytes: u64,
}

/// Its live lease.
#[derive(Debug, Clone, Copy)]
pub struct LiveLease {
    pub session: u64,
    pub deadline_at: DateTime<Utc>,
}

/// One attempt under lock.
#[derive(Debug, Clone)]
pub struct Locked {
    pub id: AttemptId,
    pub attempt: Attempt,
    pub version: u64,
    pub operation_id: OperationId,
    pub plan_node_id: String,
    /// What was asked for, at least.
    pub isolation: Isolation,
    pub runner: Option<RunnerId>,
    pub started_at: Option<DateTime<Utc>>,
    pub cancel_reason: Option<ExitReason>,
    /// The database's clock at the lock.
    pub now: DateTime<Utc>,
    pub lease: Option<LiveLease>,
    pub output: Output,
}

impl Locked {
    /// For a result.
    pub fn subject(&self) -> Subject {
        Subject {
            attempt_id: self.id,
            operation_id: self.operation_id,
            plan_node_id: self.plan_node_id.clone(),
            started_at: self.started_at,
        }
    }

    fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: AttemptId(row.get(0)),
            attempt: Attempt {
                state: words::state(row.get(1))?,
                epoch: words::count(row.get(2)),
                ran: row.get(3),
            },
            operation_id: OperationId(row.get(4)),
            plan_node_id: row.get(5),
            runner: row.get::<_, Option<Uuid>>(6).map(RunnerId),
            started_at: row.get(7),
            cancel_reason: words::reason(row.get(8))?,
            now: row.get(9),
            version: words::count(row.get(10)),
            isolation: words::isolation(row.get(11))?,
            lease: None,
            output: Output::default(),
        })
    }
}

/// What [`lock`] runs, to be prepared by who sends further queries together with it.
pub const STATEMENTS: [&str; 3] = [ATTEMPTS, LEASES, OUTPUTS];

/// Locks those of `ids` that the organization has. Output is read after the lock.
pub async fn lock(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    ids: &[AttemptId],
) -> Result<BTreeMap<AttemptId, Locked>, StoreError> {
    statements::prepare(transaction, &STATEMENTS).await?;
    let (organization, ids) = (
        organization.as_uuid(),
        ids.iter().map(|id| id.as_uuid()).collect::<Vec<_>>(),
    );
    let (attempts, leases, outputs) = futures::try_join!(
        rows(transaction, ATTEMPTS, organization, &ids),
        rows(transaction, LEASES, organization, &ids),
        rows(transaction, OUTPUTS, organization, &ids),
    )?;
    let mut locked = BTreeMap::new();
    for row in &attempts {
        let one = Locked::read(row)?;
        locked.insert(one.id, one);
    }
    for row in &leases {
        if let Some(one) = locked.get_mut(&AttemptId(row.get(0))) {
            one.lease = Some(LiveLease {
                session: words::count(row.get(1)),
                deadline_at: row.get(2),
            });
        }
    }
    for row in &outputs {
        if let Some(one) = locked.get_mut(&AttemptId(row.get(0))) {
            one.output = Output {
                last_sequence: words::count(row.get(1)),
                bytes: words::count(row.get(2)),
            };
        }
    }
    Ok(locked)
}

async fn rows(
    transaction: &OrgTransaction,
    sql: &str,
    organization: Uuid,
    ids: &Vec<Uuid>,
) -> Result<Vec<Row>, StoreError> {
    let statement = transaction.prepare_cached(sql).await?;
    Ok(transaction.query(&statement, &[&organization, ids]).await?)
}
