//! Command policies, every version of them.

use audit::NewFact;
use chrono::{DateTime, Utc};
use database::Database;
use kernel::id::OrganizationId;
use serde_json::Value;

use super::error::StoreError;
use super::words;

/// One version.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredPolicy {
    pub name: String,
    pub version: u64,
    pub body: Value,
    pub created_at: DateTime<Utc>,
}

/// What became of a new version.
#[derive(Debug, Clone)]
pub enum Put {
    Stored(StoredPolicy),
    /// The newest version says the same; it stays.
    Same(StoredPolicy),
    /// The newest version is another than the writer saw (0 when there is none).
    Moved {
        current: u64,
    },
}

/// The newest version.
///
/// # Errors
/// The database failed.
pub async fn newest(
    database: &Database,
    organization: OrganizationId,
    name: &str,
) -> Result<Option<StoredPolicy>, StoreError> {
    let mut transaction = database.begin(organization).await?;
    read(&mut transaction, organization, name).await
}

async fn read(
    transaction: &mut sqlx::Transaction<'static, sqlx::Postgres>,
    organization: OrganizationId,
    name: &str,
) -> Result<Option<StoredPolicy>, StoreError> {
    let row = sqlx::query!(
        "SELECT name, version, body, created_at FROM command_policies
        WHERE organization_id = $1 AND name = $2 ORDER BY version DESC LIMIT 1",
        organization.as_uuid(),
        name
    )
    .fetch_optional(&mut **transaction)
    .await?;
    Ok(row.map(|row| StoredPolicy {
        name: row.name,
        version: words::count(row.version),
        body: row.body,
        created_at: row.created_at,
    }))
}

/// Stores the next version. `expected` is the version that the writer saw; `None` only makes a first
/// one, or repeats what the newest says.
///
/// # Errors
/// The database failed.
pub async fn put(
    database: &Database,
    organization: OrganizationId,
    name: &str,
    expected: Option<u64>,
    body: &Value,
    fact: Option<NewFact>,
) -> Result<Put, StoreError> {
    let mut transaction = database.begin(organization).await?;
    let newest = read(&mut transaction, organization, name).await?;
    let current = newest.as_ref().map_or(0, |newest| newest.version);
    match newest {
        Some(newest) if newest.body == *body && expected.is_none_or(|e| e == current || e + 1 == current) => {
            return Ok(Put::Same(newest));
        }
        _ if expected.unwrap_or(0) != current => return Ok(Put::Moved { current }),
        _ => {}
    }
    let row = sqlx::query!(
        "INSERT INTO command_policies (organization_id, name, version, body) VALUES ($1, $2, $3, $4)
        ON CONFLICT DO NOTHING RETURNING created_at",
        organization.as_uuid(),
        name,
        words::column(current + 1),
        body
    )
    .fetch_optional(&mut *transaction)
    .await?;
    if row.is_some() {
        audit::append_sqlx(&mut transaction, fact.as_slice()).await?;
    }
    failpoints::hit("execution_plane.policy.before_commit");
    transaction.commit().await?;
    failpoints::hit("execution_plane.policy.after_commit");
    Ok(match row {
        Some(row) => Put::Stored(StoredPolicy {
            name: name.to_owned(),
            version: current + 1,
            body: body.clone(),
            created_at: row.created_at,
        }),
        // Another writer made this version meanwhile.
        None => Put::Moved { current: current + 1 },
    })
}
