//! Idempotency keys through sqlx. The connection is inside the caller's transaction, in the
//! caller's organization.

use ::sqlx::{PgConnection, Row as _};
use kernel::id::OrganizationId;

use super::{Claim, IdempotentRequest, StoredResponse, decide};
use crate::Problem;
use crate::failure::database_problem;

fn fault(error: ::sqlx::Error) -> Problem {
    database_problem(&error.into())
}

/// Claims the key of `request`, or finds its answer. Waits for a concurrent request with the same
/// key.
///
/// # Errors
/// 422 `idempotency_key_reused` when the key came with another request; else the database failed.
pub async fn claim(
    connection: &mut PgConnection,
    organization: OrganizationId,
    request: &IdempotentRequest,
) -> Result<Claim, Problem> {
    let inserted = ::sqlx::query(super::hot::CLAIM)
        .bind(organization.as_uuid())
        .bind(&request.operation)
        .bind(request.key.as_str())
        .bind(request.digest.as_bytes().as_slice())
        .execute(&mut *connection)
        .await
        .map_err(fault)?;
    if inserted.rows_affected() == 1 {
        return Ok(Claim::Fresh);
    }
    let row = ::sqlx::query(super::hot::FIND)
        .bind(organization.as_uuid())
        .bind(&request.operation)
        .bind(request.key.as_str())
        .fetch_one(&mut *connection)
        .await
        .map_err(fault)?;
    let status: Option<i16> = row.try_get(1).map_err(fault)?;
    let response = match status {
        Some(status) => Some(StoredResponse {
            status: u16::try_from(status).unwrap_or(500),
            body: row.try_get(2).map_err(fault)?,
            version: row.try_get(3).map_err(fault)?,
            location: row.try_get(4).map_err(fault)?,
            replayed: true,
        }),
        None => None,
    };
    let digest: Vec<u8> = row.try_get(0).map_err(fault)?;
    decide(request, &digest, response)
}

/// Keeps the answer to `request`; before the commit.
///
/// # Errors
/// The database failed.
pub async fn store(
    connection: &mut PgConnection,
    organization: OrganizationId,
    request: &IdempotentRequest,
    response: &StoredResponse,
) -> Result<(), Problem> {
    ::sqlx::query(super::hot::STORE)
        .bind(organization.as_uuid())
        .bind(&request.operation)
        .bind(request.key.as_str())
        .bind(i16::try_from(response.status).unwrap_or(500))
        .bind(&response.body)
        .bind(response.version)
        .bind(&response.location)
        .execute(&mut *connection)
        .await
        .map_err(fault)?;
    Ok(())
}
