//! Renewing leases. What is lost with a crash is a later deadline, which a runner that is alive
//! renews again: so the commit is not waited for.

use std::collections::HashMap;

use database::Database;
use execution_plane_domain::lease::LeaseTerms;
use kernel::id::{AttemptId, OrganizationId};
use uuid::Uuid;

use super::error::StoreError;
use super::granted::Grantee;
use super::words;

const RENEW: &str = include_str!("renew.sql");
const SESSION: &str = "SELECT session FROM runners WHERE organization_id = $1 AND runner_id = $2";
const LOOK: &str = "SELECT attempt_id, epoch, cancel_requested FROM leases
    WHERE organization_id = $1 AND runner_id = $2 AND session = $3 AND attempt_id = ANY ($4::uuid[])";

/// A lease that is this runner's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    pub epoch: u64,
    pub cancel_requested: bool,
}

/// The runner's leases among those it listed; `None` when its session is superseded.
pub type Renewed = Option<HashMap<AttemptId, Kept>>;

/// Extends those of `ids` that are the runner's.
///
/// # Errors
/// The database failed.
pub async fn renew(
    database: &Database,
    terms: &LeaseTerms,
    organization: OrganizationId,
    grantee: Grantee,
    ids: &[AttemptId],
) -> Result<Renewed, StoreError> {
    let transaction = database.begin_unsynced(organization).await?;
    let (organization, runner) = (organization.as_uuid(), grantee.runner.as_uuid());
    let session = words::column(grantee.session);
    let ids: Vec<Uuid> = ids.iter().map(|id| id.as_uuid()).collect();
    let statement = transaction.prepare_cached(SESSION).await?;
    let current = transaction.query_opt(&statement, &[&organization, &runner]).await?;
    if current.map(|row| row.get(0)) != Some(session) {
        return Ok(None);
    }
    transaction.begun().await?;
    let statement = transaction.prepare_cached(RENEW).await?;
    let lease = terms.lease.as_seconds_f64();
    let rows = transaction
        .query(&statement, &[&organization, &runner, &session, &ids, &lease])
        .await?;
    failpoints::hit("execution_plane.renew.before_commit");
    transaction.commit().await?;
    failpoints::hit("execution_plane.renew.after_commit");
    Ok(Some(rows.iter().map(kept).collect()))
}

/// Looks without extending: what a waiting renewal is woken for.
///
/// # Errors
/// The database failed.
pub async fn look(
    database: &Database,
    organization: OrganizationId,
    grantee: Grantee,
    ids: &[AttemptId],
) -> Result<HashMap<AttemptId, Kept>, StoreError> {
    let transaction = database.begin_pipelined(organization).await?;
    let ids: Vec<Uuid> = ids.iter().map(|id| id.as_uuid()).collect();
    let session = words::column(grantee.session);
    let statement = transaction.prepare_cached(LOOK).await?;
    let rows = transaction
        .query(
            &statement,
            &[&organization.as_uuid(), &grantee.runner.as_uuid(), &session, &ids],
        )
        .await?;
    transaction.rollback().await?;
    Ok(rows.iter().map(kept).collect())
}

fn kept(row: &tokio_postgres::Row) -> (AttemptId, Kept) {
    let kept = Kept {
        epoch: words::count(row.get(1)),
        cancel_requested: row.get(2),
    };
    (AttemptId(row.get(0)), kept)
}
