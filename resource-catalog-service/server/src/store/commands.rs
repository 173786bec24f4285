//! First outcomes of resource update commands, kept for ever.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use database::OrgTransaction;
use kernel::Sha256Digest;
use kernel::id::{CommandId, OrganizationId};
use resource_catalog_api::UpdateOutcome;
use serde_json::Value;
use uuid::Uuid;

use super::StoreError;

/// A command that was decided before.
#[derive(Debug, Clone)]
pub struct Decided {
    pub body_digest: Sha256Digest,
    pub outcome: UpdateOutcome,
}

const FIND: &str = "SELECT command_id, body_digest, outcome FROM resource_update_commands
WHERE organization_id = $1 AND command_id = ANY ($2)";

const KEEP: &str =
    "INSERT INTO resource_update_commands (organization_id, command_id, body_digest, outcome, decided_at)
SELECT $1, command_id, body_digest, outcome, $5
FROM unnest($2::uuid[], $3::bytea[], $4::jsonb[]) AS u (command_id, body_digest, outcome)
ON CONFLICT DO NOTHING";

/// Which of `ids` were decided before.
///
/// # Errors
/// The database failed.
pub async fn find(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    ids: &[CommandId],
) -> Result<HashMap<CommandId, Decided>, StoreError> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.as_uuid()).collect();
    let statement = transaction.prepare_cached(FIND).await?;
    let rows = transaction.query(&statement, &[&organization.as_uuid(), &ids]).await?;
    rows.iter()
        .map(|row| {
            let id: Uuid = row.try_get(0)?;
            let digest: &[u8] = row.try_get(1)?;
            let digest: [u8; 32] = digest
                .try_into()
                .map_err(|e| StoreError::unreadable("command digest", e))?;
            let outcome: Value = row.try_get(2)?;
            let decided = Decided {
                body_digest: Sha256Digest::from_bytes(digest),
                outcome: serde_json::from_value(outcome).map_err(|e| StoreError::unreadable("outcome", e))?,
            };
            Ok((CommandId(id), decided))
        })
        .collect()
}

/// Keeps outcomes. False when one of the commands was decided meanwhile: then nothing of this transaction may stand.
///
/// # Errors
/// The database failed.
pub async fn keep(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    decided: &[(CommandId, Decided)],
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    if decided.is_empty() {
        return Ok(true);
    }
    let ids: Vec<Uuid> = decided.iter().map(|(id, _)| id.as_uuid()).collect();
    let digests: Vec<&[u8]> = decided
        .iter()
        .map(|(_, d)| d.body_digest.as_bytes().as_slice())
        .collect();
    let outcomes = decided
        .iter()
        .map(|(_, d)| serde_json::to_value(&d.outcome))
        .collect::<Result<Vec<Value>, _>>()
        .map_err(|e| StoreError::unreadable("outcome", e))?;
    let statement = transaction.prepare_cached(KEEP).await?;
    let kept = transaction
        .execute(&statement, &[&organization.as_uuid(), &ids, &digests, &outcomes, &now])
        .await?;
    Ok(kept == decided.len() as u64)
}
