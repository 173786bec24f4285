//! Table `effects`: what is to be done in the world, until it is done.

use chrono::{DateTime, Utc};
use control_plane_operation::{Effect, EffectKind};
use database::OrgTransaction;
use kernel::id::{OperationId, OrganizationId};
use tokio_postgres::types::Json;
use uuid::Uuid;

use super::StoreError;
use super::statement::{bodies, body, column, execute, query};

/// How long the process that wrote an effect has for it before the sweep offers it to anyone.
pub const LEASE_SECONDS: i32 = 10;

/// One effect with whose it is.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnedEffect {
    pub organization: OrganizationId,
    pub operation: OperationId,
    pub effect: Effect,
}

/// The name of the service that carries out an effect.
pub const fn dependency(kind: &EffectKind) -> &'static str {
    match kind {
        EffectKind::ValidateBindings { .. } | EffectKind::SendResourceUpdate { .. } | EffectKind::ReleaseFinalizers => {
            "resource-catalog"
        }
        EffectKind::SubmitAttempt { .. } | EffectKind::CancelAttempt { .. } => "execution-plane",
    }
}

/// What effects are ordered by: those on one attempt are carried out one after the other.
pub fn subject(effect: &Effect) -> Uuid {
    match &effect.kind {
        EffectKind::SubmitAttempt { spec } => spec.attempt_id.0,
        EffectKind::CancelAttempt { attempt_id, .. } => attempt_id.0,
        EffectKind::SendResourceUpdate { command } => command.command_id.0,
        EffectKind::ValidateBindings { .. } | EffectKind::ReleaseFinalizers => effect.id.0,
    }
}

/// Adds effects.
pub async fn write(tx: &OrgTransaction, organization: OrganizationId, rows: &[OwnedEffect]) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO effects (id, organization_id, operation_id, subject, dependency, body, retry_at) \
        SELECT n.id, $1, n.operation_id, n.subject, n.dependency, n.body, now() + make_interval(secs => $2) \
        FROM unnest($3::uuid[], $4::uuid[], $5::uuid[], $6::text[], $7::json[]) \
        AS n (id, operation_id, subject, dependency, body)";
    if rows.is_empty() {
        return Ok(());
    }
    let id: Vec<Uuid> = rows.iter().map(|row| row.effect.id.0).collect();
    let operation: Vec<Uuid> = rows.iter().map(|row| row.operation.0).collect();
    let subject: Vec<Uuid> = rows.iter().map(|row| subject(&row.effect)).collect();
    let dependency: Vec<&str> = rows.iter().map(|row| dependency(&row.effect.kind)).collect();
    let body: Vec<Json<&Effect>> = rows.iter().map(|row| Json(&row.effect)).collect();
    let lease = f64::from(LEASE_SECONDS);
    execute(
        tx,
        SQL,
        &[&organization.0, &lease, &id, &operation, &subject, &dependency, &body],
    )
    .await?;
    Ok(())
}

/// Every effect of the operation that is not known to be done, oldest first.
pub async fn of(
    tx: &OrgTransaction,
    organization: OrganizationId,
    operation: OperationId,
) -> Result<Vec<OwnedEffect>, StoreError> {
    const SQL: &str = "SELECT body FROM effects WHERE operation_id = $1 ORDER BY id";
    let effects: Vec<Effect> = bodies(&query(tx, SQL, &[&operation.0]).await?, "effect")?;
    Ok(effects
        .into_iter()
        .map(|effect| OwnedEffect {
            organization,
            operation,
            effect,
        })
        .collect())
}

/// Reads one effect.
pub async fn find(tx: &OrgTransaction, id: Uuid) -> Result<Option<OwnedEffect>, StoreError> {
    const SQL: &str = "SELECT organization_id, operation_id, body FROM effects WHERE id = $1";
    query(tx, SQL, &[&id])
        .await?
        .first()
        .map(|row| {
            Ok(OwnedEffect {
                organization: OrganizationId(column(row, 0, "effect")?),
                operation: OperationId(column(row, 1, "effect")?),
                effect: body(row, 2, "effect")?,
            })
        })
        .transpose()
}

/// The effects on the same subject that were written before this one and are not done.
pub async fn before(tx: &OrgTransaction, subject: Uuid, id: Uuid) -> Result<Vec<Uuid>, StoreError> {
    const SQL: &str = "SELECT e.id FROM effects e JOIN effects own ON own.id = $2 AND own.operation_id = e.operation_id \
        WHERE e.subject = $1 AND e.id <> $2 AND e.id < own.id";
    query(tx, SQL, &[&subject, &id])
        .await?
        .iter()
        .map(|row| column(row, 0, "effect"))
        .collect()
}

/// Forgets effects that are done, or void.
pub async fn done(tx: &OrgTransaction, ids: &[Uuid]) -> Result<(), StoreError> {
    if ids.is_empty() {
        return Ok(());
    }
    execute(tx, "DELETE FROM effects WHERE id = ANY($1)", &[&ids]).await?;
    Ok(())
}

/// Notes that the other side did not answer.
pub async fn failed(tx: &OrgTransaction, id: Uuid, error: &str, retry_at: DateTime<Utc>) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE effects SET tries = tries + 1, failing_since = coalesce(failing_since, now()), \
        last_error = $2, retry_at = $3 WHERE id = $1";
    execute(tx, SQL, &[&id, &error, &retry_at]).await?;
    Ok(())
}
