//! Who made each version of a resource, and what it changed.

use chrono::{DateTime, Utc};
use database::OrgTransaction;
use kernel::id::{CommandId, OrganizationId, ResourceUid};
use resource_catalog_domain::VersionChanges;
use serde_json::Value;
use uuid::Uuid;

use super::StoreError;

/// Most versions that a conflict looks back over; further behind, what differs is not told one by one.
const LOOK_BACK: i64 = 200;

/// One version's record.
#[derive(Debug)]
pub struct VersionRecord<'a> {
    pub uid: ResourceUid,
    pub version: i64,
    pub changed: &'a [String],
    pub actor: &'a str,
    pub command: Option<CommandId>,
    pub at: DateTime<Utc>,
}

const RECORD: &str = "INSERT INTO resource_versions
    (organization_id, uid, version, changed, actor, command_id, occurred_at)
SELECT $1, uid, version, ARRAY(SELECT jsonb_array_elements_text(changed)), actor, command_id, occurred_at
FROM unnest($2::uuid[], $3::bigint[], $4::jsonb[], $5::text[], $6::uuid[], $7::timestamptz[])
    AS u (uid, version, changed, actor, command_id, occurred_at)";

const SINCE: &str = "SELECT version, changed FROM resource_versions
WHERE organization_id = $1 AND uid = $2 AND version > $3 ORDER BY version DESC LIMIT $4";

/// Records versions. A version that has a record already fails the transaction.
///
/// # Errors
/// The database failed.
pub async fn record(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    records: &[VersionRecord<'_>],
) -> Result<(), StoreError> {
    let uids: Vec<Uuid> = records.iter().map(|r| r.uid.as_uuid()).collect();
    let versions: Vec<i64> = records.iter().map(|r| r.version).collect();
    let changed: Vec<Value> = records.iter().map(|r| Value::from(r.changed)).collect();
    let actors: Vec<&str> = records.iter().map(|r| r.actor).collect();
    let commands: Vec<Option<Uuid>> = records.iter().map(|r| r.command.map(CommandId::as_uuid)).collect();
    let times: Vec<DateTime<Utc>> = records.iter().map(|r| r.at).collect();
    let statement = transaction.prepare_cached(RECORD).await?;
    transaction
        .execute(
            &statement,
            &[
                &organization.as_uuid(),
                &uids,
                &versions,
                &changed,
                &actors,
                &commands,
                &times,
            ],
        )
        .await?;
    Ok(())
}

/// What each version after `expected` changed, newest first, as far back as is looked.
///
/// # Errors
/// The database failed.
pub async fn since(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    uid: ResourceUid,
    expected: i64,
) -> Result<Vec<VersionChanges>, StoreError> {
    let statement = transaction.prepare_cached(SINCE).await?;
    let rows = transaction
        .query(
            &statement,
            &[&organization.as_uuid(), &uid.as_uuid(), &expected, &LOOK_BACK],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(VersionChanges {
                version: row.try_get(0)?,
                changed: row.try_get(1)?,
            })
        })
        .collect()
}
