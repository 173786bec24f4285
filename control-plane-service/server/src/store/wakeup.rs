//! Table `wakeups`: when an open operation wants to be asked again. The worker role sees them all.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use database::OrgTransaction;
use kernel::id::{OperationId, OrganizationId};
use uuid::Uuid;

use super::StoreError;
use super::statement::{column, execute, query};

/// How long a claimed wake-up is not offered again.
const LEASE_SECONDS: f64 = 10.0;

/// What an operation wants from its wake-up row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The operation is open and wants to be asked then, or only when something happens.
    At(Option<DateTime<Utc>>),
    /// Its run is over.
    Never,
}

/// Writes the rows of operations whose wish has changed.
pub async fn write(
    tx: &OrgTransaction,
    organization: OrganizationId,
    rows: &BTreeMap<OperationId, Wanted>,
) -> Result<(), StoreError> {
    const UPSERT: &str = "INSERT INTO wakeups (operation_id, organization_id, due_at) \
        SELECT n.operation_id, $1, n.due_at FROM unnest($2::uuid[], $3::timestamptz[]) AS n (operation_id, due_at) \
        ON CONFLICT (operation_id) DO UPDATE SET due_at = excluded.due_at, claims = 0";
    let mut open: (Vec<Uuid>, Vec<Option<DateTime<Utc>>>) = Default::default();
    let mut over: Vec<Uuid> = Vec::new();
    for (operation, wanted) in rows {
        match wanted {
            Wanted::At(due) => {
                open.0.push(operation.0);
                open.1.push(*due);
            }
            Wanted::Never => over.push(operation.0),
        }
    }
    if !open.0.is_empty() {
        execute(tx, UPSERT, &[&organization.0, &open.0, &open.1]).await?;
    }
    if !over.is_empty() {
        execute(tx, "DELETE FROM wakeups WHERE operation_id = ANY($1)", &[&over]).await?;
    }
    Ok(())
}

/// Takes operations that must be asked now, of all organizations: due, told something, or with an
/// effect that nobody has done in time. Attempts are counted as they are taken.
pub async fn claim_due(tx: &OrgTransaction, limit: i64) -> Result<Vec<(OrganizationId, OperationId)>, StoreError> {
    const DUE: &str = "UPDATE wakeups w SET due_at = now() + make_interval(secs => $2), claims = w.claims + 1 \
        FROM (SELECT operation_id FROM wakeups WHERE due_at <= now() ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED) due \
        WHERE w.operation_id = due.operation_id RETURNING w.organization_id, w.operation_id";
    const TOLD: &str = "SELECT DISTINCT organization_id, operation_id FROM inbox LIMIT $1";
    const OVERDUE: &str = "WITH overdue AS (UPDATE effects e SET retry_at = now() + make_interval(secs => $2) \
        FROM (SELECT id FROM effects WHERE retry_at <= now() ORDER BY retry_at LIMIT $1 FOR UPDATE SKIP LOCKED) late \
        WHERE e.id = late.id RETURNING e.organization_id, e.operation_id) \
        SELECT DISTINCT organization_id, operation_id FROM overdue";
    let mut found = Vec::new();
    for (sql, parameters) in [
        (DUE, &[&limit as super::statement::Parameter<'_>, &LEASE_SECONDS][..]),
        (TOLD, &[&limit]),
        (OVERDUE, &[&limit, &LEASE_SECONDS]),
    ] {
        for row in query(tx, sql, parameters).await? {
            found.push((
                OrganizationId(column(&row, 0, "wake-up")?),
                OperationId(column(&row, 1, "wake-up")?),
            ));
        }
    }
    Ok(found)
}

/// Whose operation it is, for a process that has not met it.
pub async fn organization_of(
    tx: &OrgTransaction,
    operation: OperationId,
) -> Result<Option<OrganizationId>, StoreError> {
    const SQL: &str = "SELECT organization_id FROM wakeups WHERE operation_id = $1 \
        UNION SELECT organization_id FROM effects WHERE operation_id = $1 \
        UNION SELECT organization_id FROM inbox WHERE operation_id = $1 LIMIT 1";
    query(tx, SQL, &[&operation.0])
        .await?
        .first()
        .map(|row| column(row, 0, "wake-up").map(OrganizationId))
        .transpose()
}
