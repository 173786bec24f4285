//! The background task that gives facts their places in the chains.
//!
//! Takes no input beyond the tables; may be started in any number of processes and killed at any moment. A batch is one
//! transaction under a lock of its own, so places are given by one at a time, after the commit of what they are given
//! to, and a lost connection gives the lock back. The commit is synced: a head that was shown does not come undone.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, SubsecRound as _, Utc};
use database::{Database, DatabaseError, OrgTransaction, Scope};
use kernel::{Sha256Digest, with_causes};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::chained::{HeadHash, link};
use crate::fact::AuditFact;
use crate::read::{digest, fact};

/// Facts a batch.
const BATCH: i64 = 1_000;
/// Time between looks, as everywhere: nobody waits for the chain, and each batch is a
/// commit that others have to wait for.
const SWEEP: Duration = Duration::from_secs(1);

const LOCK: &str = "SELECT pg_try_advisory_xact_lock(hashtext('audit.chain'), 0)";
// A fact that is gone before it was chained keeps its place in the queue, which whoever verifies is told of.
const NEXT: &str = "SELECT a.id, a.organization_id, a.at, a.actor, a.action, a.subject, a.allowed, a.result, a.reason,
    a.remote_address, a.detail, q.position
FROM audit_unchained q JOIN audit a ON a.organization_id = q.organization_id AND a.id = q.fact_id
ORDER BY q.position LIMIT $1";
const HEADS: &str = "SELECT organization_id, sequence, hash FROM audit_heads WHERE organization_id = ANY ($1)";
const CHAIN: &str = "INSERT INTO audit_chain (organization_id, sequence, fact_id, chained_at, previous_hash, hash)
SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::timestamptz[], $5::bytea[], $6::bytea[])";
const MOVE: &str = "INSERT INTO audit_heads (organization_id, sequence, hash)
SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bytea[])
ON CONFLICT (organization_id) DO UPDATE SET sequence = excluded.sequence, hash = excluded.hash";
const DONE: &str = "DELETE FROM audit_unchained WHERE position = ANY ($1)";

/// Names of a service's failpoints around the chainer's commit.
#[derive(Debug, Clone, Copy)]
struct Failpoints {
    before_commit: &'static str,
    after_commit: &'static str,
}

/// Chains the facts of one database.
#[derive(Debug, Clone)]
pub struct Chainer {
    worker: Database,
    failpoints: Option<Failpoints>,
}

impl Chainer {
    /// Works as `worker`.
    #[must_use]
    pub const fn new(worker: Database) -> Self {
        Self {
            worker,
            failpoints: None,
        }
    }

    /// Names the service's failpoints before and after each commit of a batch.
    #[must_use]
    pub const fn with_failpoints(mut self, before_commit: &'static str, after_commit: &'static str) -> Self {
        self.failpoints = Some(Failpoints {
            before_commit,
            after_commit,
        });
        self
    }

    /// Runs until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        loop {
            let full = match self.batch().await {
                Ok(chained) => chained == BATCH.unsigned_abs(),
                Err(error) => {
                    tracing::warn!(error = with_causes(&error), "audit facts could not be chained");
                    false
                }
            };
            if shutdown.is_cancelled() {
                return;
            }
            if !full {
                tokio::select! {
                    () = shutdown.cancelled() => return,
                    () = tokio::time::sleep(SWEEP) => {}
                }
            }
        }
    }

    async fn batch(&self) -> Result<u64, DatabaseError> {
        let Some(batch) = Batch::take(&self.worker, BATCH).await? else {
            return Ok(0);
        };
        if let Some(names) = self.failpoints {
            failpoints::hit(names.before_commit);
        }
        let chained = batch.commit().await?;
        if let Some(names) = self.failpoints {
            failpoints::hit(names.after_commit);
        }
        Ok(chained)
    }
}

/// Chains up to `limit` facts; returns how many. None are also chained while another does it.
///
/// # Errors
/// The database failed; what was not committed waits on.
pub async fn chain_batch(worker: &Database, limit: i64) -> Result<u64, DatabaseError> {
    match Batch::take(worker, limit).await? {
        Some(batch) => batch.commit().await,
        None => Ok(0),
    }
}

/// A batch that is written, not committed.
struct Batch {
    transaction: OrgTransaction,
    chained: u64,
}

/// One new link.
struct Link {
    organization: Uuid,
    fact: Uuid,
    previous: Option<Sha256Digest>,
    head: HeadHash,
}

impl Batch {
    async fn take(worker: &Database, limit: i64) -> Result<Option<Self>, DatabaseError> {
        let transaction = worker.begin_hot(Scope::All).await?;
        let statement = transaction.prepare_cached(LOCK).await?;
        let is_ours: bool = transaction.query_one(&statement, &[]).await?.get(0);
        if !is_ours {
            transaction.rollback().await?;
            return Ok(None);
        }
        // A statement of its own sees what was committed before the lock was had.
        let statement = transaction.prepare_cached(NEXT).await?;
        let rows = transaction.query(&statement, &[&limit]).await?;
        if rows.is_empty() {
            transaction.rollback().await?;
            return Ok(None);
        }
        let waiting: Vec<(AuditFact, i64)> = rows.iter().map(|row| (fact(row, row.get(0)), row.get(11))).collect();
        let mut heads = heads(&transaction, &waiting).await?;
        // What the database keeps of a time.
        let now = Utc::now().trunc_subsecs(6);
        let (mut links, mut positions) = (Vec::new(), Vec::new());
        for (fact, position) in &waiting {
            if let Some(link) = next(&mut heads, fact, now) {
                links.push(link);
                positions.push(*position);
            }
        }
        write(&transaction, &links, &positions, now).await?;
        let chained = links.len() as u64;
        Ok(Some(Self { transaction, chained }))
    }

    async fn commit(self) -> Result<u64, DatabaseError> {
        self.transaction.commit().await?;
        Ok(self.chained)
    }
}

async fn heads(
    transaction: &OrgTransaction,
    waiting: &[(AuditFact, i64)],
) -> Result<BTreeMap<Uuid, HeadHash>, DatabaseError> {
    let mut organizations: Vec<Uuid> = waiting.iter().map(|(fact, _)| fact.organization_id.as_uuid()).collect();
    organizations.sort_unstable();
    organizations.dedup();
    let statement = transaction.prepare_cached(HEADS).await?;
    let rows = transaction.query(&statement, &[&organizations]).await?;
    let head = |row: &tokio_postgres::Row| HeadHash {
        sequence: row.get(1),
        hash: digest(row.get(2)),
    };
    Ok(rows.iter().map(|row| (row.get(0), head(row))).collect())
}

/// The next link of the fact's chain. None for a fact without canonical form: it keeps waiting, and holds no other up.
fn next(heads: &mut BTreeMap<Uuid, HeadHash>, fact: &AuditFact, now: DateTime<Utc>) -> Option<Link> {
    let organization = fact.organization_id.as_uuid();
    let last = heads.get(&organization).copied();
    let (sequence, previous) = (last.map_or(1, |last| last.sequence + 1), last.map(|last| last.hash));
    match link(sequence, previous, now, fact) {
        Ok(hash) => {
            let head = HeadHash { sequence, hash };
            heads.insert(organization, head);
            Some(Link {
                organization,
                fact: fact.id,
                previous,
                head,
            })
        }
        Err(error) => {
            tracing::error!(fact = %fact.id, %error, "an audit fact cannot be chained");
            None
        }
    }
}

async fn write(
    transaction: &OrgTransaction,
    links: &[Link],
    positions: &[i64],
    now: DateTime<Utc>,
) -> Result<(), DatabaseError> {
    let organizations: Vec<Uuid> = links.iter().map(|link| link.organization).collect();
    let sequences: Vec<i64> = links.iter().map(|link| link.head.sequence).collect();
    let facts: Vec<Uuid> = links.iter().map(|link| link.fact).collect();
    let times = vec![now; links.len()];
    let previous: Vec<Option<&[u8]>> = links
        .iter()
        .map(|link| link.previous.as_ref().map(|hash| hash.as_bytes().as_slice()))
        .collect();
    let hashes: Vec<&[u8]> = links.iter().map(|link| link.head.hash.as_bytes().as_slice()).collect();
    let statement = transaction.prepare_cached(CHAIN).await?;
    transaction
        .execute(
            &statement,
            &[&organizations, &sequences, &facts, &times, &previous, &hashes],
        )
        .await?;
    let mut ends: BTreeMap<Uuid, &HeadHash> = BTreeMap::new();
    for link in links {
        ends.insert(link.organization, &link.head);
    }
    let organizations: Vec<Uuid> = ends.keys().copied().collect();
    let sequences: Vec<i64> = ends.values().map(|head| head.sequence).collect();
    let hashes: Vec<&[u8]> = ends.values().map(|head| head.hash.as_bytes().as_slice()).collect();
    let statement = transaction.prepare_cached(MOVE).await?;
    transaction
        .execute(&statement, &[&organizations, &sequences, &hashes])
        .await?;
    let statement = transaction.prepare_cached(DONE).await?;
    transaction.execute(&statement, &[&positions]).await?;
    Ok(())
}
