//! Table `audit`: every command, allowed or refused.

use database::OrgTransaction;
use kernel::id::OrganizationId;
use serde_json::Value;
use uuid::Uuid;

use super::StoreError;
use super::statement::execute;

/// One command.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    pub actor: &'a str,
    /// For example `operation.create`.
    pub action: &'a str,
    pub subject: &'a str,
    /// `accepted`, or the code it was refused with.
    pub result: &'a str,
    pub allowed: bool,
    pub reason: &'a str,
    pub detail: Value,
}

/// Adds an entry.
pub async fn append(tx: &OrgTransaction, organization: OrganizationId, entry: Entry<'_>) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO audit (id, organization_id, actor, action, subject, allowed, result, reason, detail) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    execute(
        tx,
        SQL,
        &[
            &Uuid::now_v7(),
            &organization.0,
            &entry.actor,
            &entry.action,
            &entry.subject,
            &entry.allowed,
            &entry.result,
            &entry.reason,
            &entry.detail,
        ],
    )
    .await?;
    Ok(())
}
