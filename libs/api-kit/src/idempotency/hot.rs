//! Idempotency keys through tokio-postgres. The transaction is in the caller's organization.

use database::OrgTransaction;
use kernel::id::OrganizationId;

use super::{Claim, IdempotentRequest, StoredResponse, decide};
use crate::Problem;
use crate::failure::database_problem;

// A key older than seven days is free again, also before the sweep.
pub(super) const CLAIM: &str = "INSERT INTO idempotency_keys AS k (organization_id, operation, key, request_digest)
VALUES ($1, $2, $3, $4)
ON CONFLICT (organization_id, operation, key) DO UPDATE
SET request_digest = excluded.request_digest, status = NULL, created_at = now()
WHERE k.created_at < now() - interval '7 days'";

pub(super) const FIND: &str = "SELECT request_digest, status, body, version, location FROM idempotency_keys
WHERE organization_id = $1 AND operation = $2 AND key = $3";

pub(super) const STORE: &str = "UPDATE idempotency_keys SET status = $4, body = $5, version = $6, location = $7
WHERE organization_id = $1 AND operation = $2 AND key = $3";

const REAP: &str = "DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(
SELECT ctid FROM idempotency_keys WHERE created_at < now() - interval '7 days' ORDER BY created_at LIMIT 1000))";

fn fault(error: tokio_postgres::Error) -> Problem {
    database_problem(&error.into())
}

/// Claims the key of `request`, or finds its answer. Waits for a concurrent request with the same
/// key.
///
/// # Errors
/// 422 `idempotency_key_reused` when the key came with another request; else the database failed.
pub async fn claim(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    request: &IdempotentRequest,
) -> Result<Claim, Problem> {
    let (organization, key) = (organization.as_uuid(), request.key.as_str());
    let digest = request.digest.as_bytes().as_slice();
    let statement = transaction.prepare_cached(CLAIM).await.map_err(fault)?;
    let inserted = transaction
        .execute(&statement, &[&organization, &request.operation, &key, &digest])
        .await
        .map_err(fault)?;
    if inserted == 1 {
        return Ok(Claim::Fresh);
    }
    let statement = transaction.prepare_cached(FIND).await.map_err(fault)?;
    let row = transaction
        .query_one(&statement, &[&organization, &request.operation, &key])
        .await
        .map_err(fault)?;
    let response = row.get::<_, Option<i16>>(1).map(|status| StoredResponse {
        status: u16::try_from(status).unwrap_or(500),
        body: row.get(2),
        version: row.get(3),
        location: row.get(4),
        replayed: true,
    });
    decide(request, row.get(0), response)
}

/// Keeps the answer to `request`; before the commit.
///
/// # Errors
/// The database failed.
pub async fn store(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    request: &IdempotentRequest,
    response: &StoredResponse,
) -> Result<(), Problem> {
    let statement = transaction.prepare_cached(STORE).await.map_err(fault)?;
    transaction
        .execute(
            &statement,
            &[
                &organization.as_uuid(),
                &request.operation,
                &request.key.as_str(),
                &i16::try_from(response.status).unwrap_or(500),
                &response.body,
                &response.version,
                &response.location,
            ],
        )
        .await
        .map_err(fault)?;
    Ok(())
}

/// Deletes up to 1,000 keys older than seven days, as the worker role. Returns how many there were.
///
/// # Errors
/// The database failed.
pub async fn reap(database: &database::Database) -> Result<u64, database::DatabaseError> {
    Ok(database.hot().get().await?.execute(REAP, &[]).await?)
}
