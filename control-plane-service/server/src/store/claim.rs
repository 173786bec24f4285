//! Table `claims`: who holds which resource, and who waits for it in which order.
//!
//! Invariants: a request is granted whole or not at all; nobody overtakes a conflicting request with an
//! earlier ticket; whoever looks at or changes the claims of a resource holds that resource's lock, taken
//! in the order of uids, until the transaction ends. So overlaps of any number cannot deadlock.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use control_plane_operation::{Blocker, ClaimRequestId};
use control_plane_plan::{Claim, ClaimMode};
use database::OrgTransaction;
use kernel::ResourceId;
use kernel::id::{OperationId, OrganizationId, ResourceUid};
use tokio_postgres::Row;
use uuid::Uuid;

use super::StoreError;
use super::statement::{column, execute, query};

/// The word in the column.
pub const fn word(mode: ClaimMode) -> &'static str {
    match mode {
        ClaimMode::Read => "read",
        ClaimMode::Shared => "shared",
        ClaimMode::Exclusive => "exclusive",
    }
}

/// The mode that a column names.
pub fn mode(word: &str) -> Result<ClaimMode, StoreError> {
    match word {
        "read" => Ok(ClaimMode::Read),
        "shared" => Ok(ClaimMode::Shared),
        "exclusive" => Ok(ClaimMode::Exclusive),
        other => Err(StoreError::corrupt("claim")(format!("unknown mode {other:?}").into())),
    }
}

/// Locks resources, in the order of their uids.
pub async fn lock(tx: &OrgTransaction, uids: &BTreeSet<ResourceUid>) -> Result<(), StoreError> {
    const SQL: &str = "SELECT pg_advisory_xact_lock(k) FROM unnest($1::bigint[]) AS k";
    if uids.is_empty() {
        return Ok(());
    }
    let keys: BTreeSet<i64> = uids.iter().map(|uid| uid.0.as_u64_pair().1 as i64).collect();
    let keys: Vec<i64> = keys.into_iter().collect();
    query(tx, SQL, &[&keys]).await?;
    Ok(())
}

/// The resources of requests, held or queued.
pub async fn resources_of(tx: &OrgTransaction, requests: &[Uuid]) -> Result<BTreeSet<ResourceUid>, StoreError> {
    query(tx, "SELECT uid FROM claims WHERE request_id = ANY($1)", &[&requests])
        .await?
        .iter()
        .map(|row| column(row, 0, "claim").map(ResourceUid))
        .collect()
}

/// Puts a request at the end of the queue of each of its (locked) resources.
pub async fn queue(
    tx: &OrgTransaction,
    organization: OrganizationId,
    operation: OperationId,
    run: u32,
    request: ClaimRequestId,
    claims: &[Claim],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const SQL: &str = "WITH own AS MATERIALIZED (SELECT nextval('claim_tickets') AS ticket) \
        INSERT INTO claims (request_id, uid, organization_id, operation_id, run, resource_id, mode, held, ticket, since) \
        SELECT $1, n.uid, $2, $3, $4, n.resource_id, n.mode, false, own.ticket, $5 \
        FROM unnest($6::uuid[], $7::text[], $8::text[]) AS n (uid, resource_id, mode), own";
    let uid: Vec<Uuid> = claims.iter().map(|claim| claim.uid.0).collect();
    let resource: Vec<&str> = claims.iter().map(|claim| claim.resource_id.as_str()).collect();
    let mode: Vec<&str> = claims.iter().map(|claim| word(claim.mode)).collect();
    execute(
        tx,
        SQL,
        &[
            &request.0,
            &organization.0,
            &operation.0,
            &(run as i32),
            &now,
            &uid,
            &resource,
            &mode,
        ],
    )
    .await?;
    Ok(())
}

/// Who stands in the way of a request: conflicting holders, and conflicting requests queued before it.
pub async fn blockers(tx: &OrgTransaction, request: ClaimRequestId) -> Result<Vec<Blocker>, StoreError> {
    const SQL: &str = "SELECT other.uid, other.resource_id, other.operation_id, other.mode, other.since, other.held \
        FROM claims own JOIN claims other ON other.uid = own.uid AND other.request_id <> own.request_id \
        WHERE own.request_id = $1 AND (other.held OR other.ticket < own.ticket) \
        AND (own.mode = 'exclusive' OR other.mode = 'exclusive') \
        ORDER BY other.uid, other.held DESC, other.ticket LIMIT 100";
    query(tx, SQL, &[&request.0]).await?.iter().map(blocker).collect()
}

fn blocker(row: &Row) -> Result<Blocker, StoreError> {
    let resource: String = column(row, 1, "claim")?;
    let word: String = column(row, 3, "claim")?;
    Ok(Blocker {
        uid: ResourceUid(column(row, 0, "claim")?),
        resource_id: resource
            .parse::<ResourceId>()
            .map_err(|error| StoreError::corrupt("claim")(Box::new(error)))?,
        operation_id: OperationId(column(row, 2, "claim")?),
        mode: mode(&word)?,
        since: column(row, 4, "claim")?,
        holds: column(row, 5, "claim")?,
    })
}

/// Turns a queued request into a held one.
pub async fn grant(tx: &OrgTransaction, request: ClaimRequestId, now: DateTime<Utc>) -> Result<(), StoreError> {
    execute(
        tx,
        "UPDATE claims SET held = true, since = $2 WHERE request_id = $1",
        &[&request.0, &now],
    )
    .await?;
    Ok(())
}

/// Ends requests, held or queued, and says which operations wait for what they let go.
pub async fn release(tx: &OrgTransaction, requests: &[Uuid]) -> Result<Vec<OperationId>, StoreError> {
    const SQL: &str = "WITH gone AS (DELETE FROM claims WHERE request_id = ANY($1) RETURNING uid) \
        SELECT DISTINCT c.operation_id FROM claims c JOIN gone ON gone.uid = c.uid \
        WHERE NOT c.held AND c.request_id <> ALL($1) ORDER BY c.operation_id";
    query(tx, SQL, &[&requests])
        .await?
        .iter()
        .map(|row| column(row, 0, "claim").map(OperationId))
        .collect()
}
