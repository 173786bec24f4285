//! Reading facts and their chain, of one organization.

use database::{Database, DatabaseError};
use kernel::Sha256Digest;
use kernel::id::OrganizationId;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::chained::{ChainHead, ChainPage, ChainedFact, HeadHash};
use crate::fact::AuditFact;

const LIST: &str =
    "SELECT id, organization_id, at, actor, action, subject, allowed, result, reason, remote_address, detail
FROM audit WHERE organization_id = $1 AND ($2::uuid IS NULL OR id > $2) ORDER BY id LIMIT $3";

const CHAIN: &str = "SELECT a.id, a.organization_id, a.at, a.actor, a.action, a.subject, a.allowed, a.result, a.reason,
    a.remote_address, a.detail, c.sequence, c.previous_hash, c.hash, c.chained_at, c.fact_id
FROM audit_chain c LEFT JOIN audit a ON a.organization_id = c.organization_id AND a.id = c.fact_id
WHERE c.organization_id = $1 AND c.sequence > $2 ORDER BY c.sequence LIMIT $3";

const REVISION: &str = "SELECT sequence FROM audit_heads WHERE organization_id = $1";

// One statement, so one moment.
const HEAD: &str = "SELECT h.sequence, h.hash,
    (SELECT count(*) FROM audit WHERE organization_id = $1),
    (SELECT count(*) FROM audit_chain WHERE organization_id = $1),
    (SELECT count(*) FROM audit_unchained WHERE organization_id = $1)
FROM (SELECT) one LEFT JOIN audit_heads h ON h.organization_id = $1";

/// Up to `limit` facts after the id `after`, oldest first.
///
/// # Errors
/// The database failed.
pub async fn list(
    database: &Database,
    organization: OrganizationId,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<AuditFact>, DatabaseError> {
    let transaction = database.begin_hot(organization).await?;
    let statement = transaction.prepare_cached(LIST).await?;
    let rows = transaction
        .query(&statement, &[&organization.as_uuid(), &after, &limit])
        .await?;
    Ok(rows.iter().map(|row| fact(row, row.get(0))).collect())
}

/// Up to `limit` links after the sequence `after`.
///
/// # Errors
/// The database failed.
pub async fn chain(
    database: &Database,
    organization: OrganizationId,
    after: i64,
    limit: u32,
) -> Result<ChainPage, DatabaseError> {
    let transaction = database.begin_hot(organization).await?;
    let statement = transaction.prepare_cached(CHAIN).await?;
    let peek = i64::from(limit) + 1;
    let rows = transaction
        .query(&statement, &[&organization.as_uuid(), &after, &peek])
        .await?;
    let shown = rows.len().min(limit as usize);
    let links: Vec<ChainedFact> = rows[..shown].iter().map(chained).collect();
    let next_after = links.last().filter(|_| rows.len() > shown).map(|last| last.sequence);
    Ok(ChainPage { links, next_after })
}

/// The last sequence of the chain; 0 before the first.
///
/// # Errors
/// The database failed.
pub async fn revision(database: &Database, organization: OrganizationId) -> Result<i64, DatabaseError> {
    let transaction = database.begin_hot(organization).await?;
    let statement = transaction.prepare_cached(REVISION).await?;
    let row = transaction.query_opt(&statement, &[&organization.as_uuid()]).await?;
    Ok(row.map_or(0, |row| row.get(0)))
}

/// Where the chain ends, and how many facts there are.
///
/// # Errors
/// The database failed.
pub async fn head(database: &Database, organization: OrganizationId) -> Result<ChainHead, DatabaseError> {
    let transaction = database.begin_hot(organization).await?;
    let statement = transaction.prepare_cached(HEAD).await?;
    let row = transaction.query_one(&statement, &[&organization.as_uuid()]).await?;
    let sequence: Option<i64> = row.get(0);
    Ok(ChainHead {
        head: sequence.map(|sequence| HeadHash {
            sequence,
            hash: digest(row.get(1)),
        }),
        facts: row.get(2),
        chained: row.get(3),
        waiting: row.get(4),
    })
}

fn chained(row: &Row) -> ChainedFact {
    ChainedFact {
        sequence: row.get(11),
        previous_hash: row.get::<_, Option<&[u8]>>(12).map(digest),
        hash: digest(row.get(13)),
        chained_at: row.get(14),
        fact_id: row.get(15),
        fact: row.get::<_, Option<Uuid>>(0).map(|id| fact(row, id)),
    }
}

/// A fact from the first eleven columns of a row.
pub(crate) fn fact(row: &Row, id: Uuid) -> AuditFact {
    AuditFact {
        id,
        organization_id: OrganizationId(row.get(1)),
        occurred_at: row.get(2),
        actor: row.get(3),
        action: row.get(4),
        subject: row.get(5),
        allowed: row.get(6),
        result: row.get(7),
        reason: row.get(8),
        remote_address: row.get(9),
        detail: row.get(10),
    }
}

/// A digest as stored. Bytes of another length are no digest: they are given as one that fits nothing.
pub(crate) fn digest(bytes: &[u8]) -> Sha256Digest {
    <[u8; 32]>::try_from(bytes).map_or_else(|_| Sha256Digest::from_bytes([0; 32]), Sha256Digest::from_bytes)
}

const FIGURES: &str = "SELECT count(*), coalesce(extract(epoch FROM clock_timestamp() - min(a.at)), 0)::float8
FROM audit_unchained q JOIN audit a ON a.organization_id = q.organization_id AND a.id = q.fact_id";

/// Facts of all organizations that wait for their place, and how long the oldest does, in seconds. As worker.
///
/// # Errors
/// The database failed.
pub async fn waiting(worker: &Database) -> Result<(i64, f64), DatabaseError> {
    let client = worker.hot().get().await?;
    let row = client.query_one(FIGURES, &[]).await?;
    Ok((row.get(0), row.get(1)))
}
