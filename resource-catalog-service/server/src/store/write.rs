//! Making new versions of resources: the row, what is searched of it, the version's record and the change record, all
//! in the caller's transaction.
//!
//! Invariants: whoever calls this holds the rows locked; each version that is written has exactly one change record;
//! a row that is not at the version it should be at fails the transaction.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use database::OrgTransaction;
use futures::try_join;
use kernel::id::{CommandId, OrganizationId, ResourceUid};
use resource_catalog_domain::{Change, Resource};
use serde_json::Value;
use tokio_postgres::types::ToSql;

use super::row::{edges_value, provided_value};
use super::versions::VersionRecord;
use super::{StoreError, edges, feed, provided_capabilities, versions};

/// One new version and who made it. Several of one resource are given in order.
#[derive(Debug)]
pub struct Write {
    /// None for the first version.
    pub before: Option<Resource>,
    pub change: Change,
    pub cause: Cause,
}

/// Who made a version, and by what.
#[derive(Debug, Clone)]
pub struct Cause {
    /// The subject of the caller's token.
    pub actor: String,
    pub command: Option<CommandId>,
    pub traceparent: Option<String>,
}

/// What a transaction makes of one resource, from its first write to its last; what is searched of it follows this.
pub(super) struct Net<'a> {
    pub before: Option<&'a Resource>,
    pub next: &'a Resource,
}

/// Makes the versions `writes`. False when a resource that was to be created exists: then nothing of this transaction
/// may stand.
///
/// # Errors
/// The database failed.
pub async fn write(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    writes: &[Write],
) -> Result<bool, StoreError> {
    if writes.is_empty() {
        return Ok(true);
    }
    let nets = nets(writes);
    for net in nets.iter().filter(|net| net.before.is_none()) {
        if !insert(transaction, organization, net.next).await? {
            return Ok(false);
        }
    }
    let records: Vec<VersionRecord<'_>> = writes
        .iter()
        .map(|w| VersionRecord {
            uid: w.change.next.uid,
            version: w.change.next.version,
            changed: &w.change.changed,
            actor: &w.cause.actor,
            command: w.cause.command,
            at: w.change.next.updated_at,
        })
        .collect();
    // Sent one after the other without waiting; none depends on another's rows.
    try_join!(
        update_observed(transaction, organization, &nets),
        update_whole(transaction, organization, &nets),
        provided_capabilities::index(transaction, organization, &nets),
        edges::index(transaction, organization, &nets),
        versions::record(transaction, organization, &records),
        feed::append(transaction, writes),
    )?;
    Ok(true)
}

fn nets(writes: &[Write]) -> Vec<Net<'_>> {
    let mut nets: BTreeMap<ResourceUid, Net<'_>> = BTreeMap::new();
    for write in writes {
        let next = &write.change.next;
        nets.entry(next.uid).and_modify(|net| net.next = next).or_insert(Net {
            before: write.before.as_ref(),
            next,
        });
    }
    nets.into_values().collect()
}

pub(super) async fn run(
    transaction: &OrgTransaction,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<u64, StoreError> {
    let statement = transaction.prepare_cached(sql).await?;
    Ok(transaction.execute(&statement, parameters).await?)
}

const INSERT: &str = "INSERT INTO resources
    (organization_id, resource_id, uid, resource_type, type_ancestors, environment, labels, annotations,
     lifecycle_status, health_status, health_reasons, health_observed_at, desired_state, observed_state, connection,
     version, desired_generation, provided, edges, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
ON CONFLICT (organization_id, resource_id) DO NOTHING";

async fn insert(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    resource: &Resource,
) -> Result<bool, StoreError> {
    let ancestors: Vec<&str> = resource.ancestors.iter().map(|a| a.as_str()).collect();
    let inserted = run(
        transaction,
        INSERT,
        &[
            &organization.as_uuid(),
            &resource.id.as_str(),
            &resource.uid.as_uuid(),
            &resource.resource_type.as_str(),
            &ancestors,
            &resource.environment,
            &text_map(&resource.labels),
            &text_map(&resource.annotations),
            &resource.lifecycle.as_str(),
            &resource.health.status.as_str(),
            &resource.health.reasons,
            &resource.health.observed_at,
            &Value::Object(resource.desired.clone()),
            &Value::Object(resource.observed.clone()),
            &Value::Object(resource.connection.clone()),
            &resource.version,
            &resource.desired_generation,
            &provided_value(&resource.provided)?,
            &edges_value(&resource.edges),
            &resource.created_at,
            &resource.updated_at,
        ],
    )
    .await?;
    Ok(inserted == 1)
}

fn text_map(map: &BTreeMap<String, String>) -> Value {
    map.iter().map(|(k, v)| (k.clone(), Value::from(v.as_str()))).collect()
}

/// Whether only what observation and operations change differs.
fn is_observed_only(before: &Resource, next: &Resource) -> bool {
    before.desired_generation == next.desired_generation
        && before.labels == next.labels
        && before.annotations == next.annotations
        && before.environment == next.environment
        && before.edges == next.edges
}

const UPDATE_OBSERVED: &str = "UPDATE resources AS r SET
    lifecycle_status = u.lifecycle_status, health_status = u.health_status,
    health_reasons = ARRAY(SELECT jsonb_array_elements_text(u.health_reasons)),
    health_observed_at = u.health_observed_at, observed_state = u.observed_state, provided = u.provided,
    version = u.version, updated_at = u.updated_at
FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::jsonb[], $8::timestamptz[],
        $9::jsonb[], $10::jsonb[], $11::timestamptz[])
    AS u (resource_id, prev_version, version, lifecycle_status, health_status, health_reasons, health_observed_at,
        observed_state, provided, updated_at)
WHERE r.organization_id = $1 AND r.resource_id = u.resource_id AND r.version = u.prev_version";

async fn update_observed(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    nets: &[Net<'_>],
) -> Result<(), StoreError> {
    let chosen: Vec<(&Resource, &Resource)> = nets
        .iter()
        .filter_map(|net| Some((net.before?, net.next)))
        .filter(|(before, next)| is_observed_only(before, next))
        .collect();
    if chosen.is_empty() {
        return Ok(());
    }
    let next = || chosen.iter().map(|(_, next)| *next);
    let ids: Vec<&str> = next().map(|r| r.id.as_str()).collect();
    let previous: Vec<i64> = chosen.iter().map(|(before, _)| before.version).collect();
    let versions: Vec<i64> = next().map(|r| r.version).collect();
    let lifecycles: Vec<&str> = next().map(|r| r.lifecycle.as_str()).collect();
    let healths: Vec<&str> = next().map(|r| r.health.status.as_str()).collect();
    let reasons: Vec<Value> = next().map(|r| Value::from(r.health.reasons.clone())).collect();
    let observed_at: Vec<Option<DateTime<Utc>>> = next().map(|r| r.health.observed_at).collect();
    let states: Vec<Value> = next().map(|r| Value::Object(r.observed.clone())).collect();
    let provided = next()
        .map(|r| provided_value(&r.provided))
        .collect::<Result<Vec<Value>, _>>()?;
    let updated_at: Vec<DateTime<Utc>> = next().map(|r| r.updated_at).collect();
    let updated = run(
        transaction,
        UPDATE_OBSERVED,
        &[
            &organization.as_uuid(),
            &ids,
            &previous,
            &versions,
            &lifecycles,
            &healths,
            &reasons,
            &observed_at,
            &states,
            &provided,
            &updated_at,
        ],
    )
    .await?;
    expect_rows(updated, chosen.len())
}

const UPDATE_WHOLE: &str = "UPDATE resources SET
    environment = $4, labels = $5, annotations = $6, lifecycle_status = $7, health_status = $8, health_reasons = $9,
    health_observed_at = $10, desired_state = $11, observed_state = $12, connection = $13, version = $14,
    desired_generation = $15, provided = $16, edges = $17, updated_at = $18
WHERE organization_id = $1 AND resource_id = $2 AND version = $3";

async fn update_whole(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    nets: &[Net<'_>],
) -> Result<(), StoreError> {
    let chosen = nets
        .iter()
        .filter_map(|net| Some((net.before?, net.next)))
        .filter(|(before, next)| !is_observed_only(before, next));
    for (before, next) in chosen {
        let updated = run(
            transaction,
            UPDATE_WHOLE,
            &[
                &organization.as_uuid(),
                &next.id.as_str(),
                &before.version,
                &next.environment,
                &text_map(&next.labels),
                &text_map(&next.annotations),
                &next.lifecycle.as_str(),
                &next.health.status.as_str(),
                &next.health.reasons,
                &next.health.observed_at,
                &Value::Object(next.desired.clone()),
                &Value::Object(next.observed.clone()),
                &Value::Object(next.connection.clone()),
                &next.version,
                &next.desired_generation,
                &provided_value(&next.provided)?,
                &edges_value(&next.edges),
                &next.updated_at,
            ],
        )
        .await?;
        expect_rows(updated, 1)?;
    }
    Ok(())
}

fn expect_rows(found: u64, expected: usize) -> Result<(), StoreError> {
    if found == expected as u64 {
        Ok(())
    } else {
        let problem = format!("{found} of {expected} locked rows were at their version");
        Err(StoreError::unreadable("resource version", problem))
    }
}
