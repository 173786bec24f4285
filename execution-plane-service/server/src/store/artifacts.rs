//! Metadata of artifacts.

use std::collections::HashMap;

use audit::NewFact;
use contracts::{ArtifactRef, ArtifactStorage, ProducedBy, Sensitivity};
use database::{Database, OrgTransaction};
use kernel::Sha256Digest;
use kernel::id::{AttemptId, OperationId, OrganizationId};
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::StoreError;
use super::report::{Fenced, Reporter};
use super::words;

/// What [`of_attempts`] runs.
pub const OF_ATTEMPTS: &str = "SELECT attempt_id, artifact_id, artifact_type, uri, sensitivity, operation_id,
        plan_node_id, name, sha256, size_bytes, media_type
    FROM artifacts WHERE organization_id = $1 AND attempt_id = ANY ($2::uuid[])
    ORDER BY recorded_at, name";
const PAGE: &str = "SELECT attempt_id, artifact_id, artifact_type, uri, sensitivity, operation_id,
        plan_node_id, name, sha256, size_bytes, media_type
    FROM artifacts WHERE organization_id = $1 AND attempt_id = $2 AND ($3::text IS NULL OR name > $3)
    ORDER BY name LIMIT $4";
const NAMED: &str = "SELECT attempt_id, artifact_id, artifact_type, uri, sensitivity, operation_id,
        plan_node_id, name, sha256, size_bytes, media_type
    FROM artifacts WHERE organization_id = $1 AND attempt_id = $2 AND name = $3";
const OF_OPERATION: &str = "SELECT attempt_id, artifact_id, artifact_type, uri, sensitivity, operation_id,
        plan_node_id, name, sha256, size_bytes, media_type
    FROM artifacts WHERE organization_id = $1 AND operation_id = $2 AND name = $3
    ORDER BY recorded_at DESC LIMIT 1";

/// What an upload says of itself.
#[derive(Debug, Clone)]
pub struct NewArtifact {
    pub id: Uuid,
    pub name: String,
    pub artifact_type: String,
    pub sensitivity: Sensitivity,
    pub sha256: Sha256Digest,
    pub size_bytes: u64,
    pub media_type: Option<String>,
}

/// What became of an upload.
#[derive(Debug, Clone)]
pub enum Recorded {
    Stored(Box<ArtifactRef>),
    Fenced(Fenced),
    /// Another artifact has the name.
    Conflict,
}

/// Records an uploaded artifact, whose bytes are durable, under its attempt.
///
/// # Errors
/// The database failed.
pub async fn record(
    database: &Database,
    reporter: Reporter,
    new: NewArtifact,
    fact: Option<NewFact>,
) -> Result<Recorded, StoreError> {
    let transaction = database.begin_hot(reporter.organization).await?;
    let locked = match reporter.lock(&transaction).await? {
        Ok(locked) => locked,
        Err(fenced) => return Ok(Recorded::Fenced(fenced)),
    };
    let earlier = of_attempts(&transaction, reporter.organization, &[reporter.attempt]).await?;
    let earlier = earlier
        .into_values()
        .flatten()
        .find(|artifact| artifact.name.as_deref() == Some(&new.name));
    if let Some(earlier) = earlier {
        return Ok(if earlier.sha256 == Some(new.sha256) {
            Recorded::Stored(Box::new(earlier))
        } else {
            Recorded::Conflict
        });
    }
    if locked.attempt.state.is_terminal() {
        return Ok(Recorded::Fenced(Fenced::Ended));
    }
    let uri = format!(
        "s3://platform-artifacts/operations/{}/attempts/{}/{}",
        locked.operation_id, locked.id, new.name
    );
    insert(&transaction, reporter, &locked, &new, &uri).await?;
    audit::append(&transaction, fact.as_slice()).await?;
    failpoints::hit("execution_plane.artifact.before_commit");
    transaction.commit().await?;
    failpoints::hit("execution_plane.artifact.after_commit");
    Ok(Recorded::Stored(Box::new(ArtifactRef {
        id: new.id,
        artifact_type: new.artifact_type,
        storage: ArtifactStorage::S3,
        uri,
        sensitivity: new.sensitivity,
        produced_by: ProducedBy {
            operation_id: locked.operation_id,
            plan_node_id: locked.plan_node_id,
        },
        name: Some(new.name),
        sha256: Some(new.sha256),
        size_bytes: Some(new.size_bytes),
        media_type: new.media_type,
    })))
}

async fn insert(
    transaction: &OrgTransaction,
    reporter: Reporter,
    locked: &super::locked::Locked,
    new: &NewArtifact,
    uri: &str,
) -> Result<(), StoreError> {
    const INSERT: &str = "INSERT INTO artifacts (organization_id, attempt_id, name, artifact_id, operation_id,
            plan_node_id, artifact_type, sensitivity, uri, sha256, size_bytes, media_type)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    let statement = transaction.prepare_cached(INSERT).await?;
    transaction
        .execute(
            &statement,
            &[
                &reporter.organization.as_uuid(),
                &reporter.attempt.as_uuid(),
                &new.name,
                &new.id,
                &locked.operation_id.as_uuid(),
                &locked.plan_node_id,
                &new.artifact_type,
                &words::sensitivity_word(new.sensitivity),
                &uri,
                &new.sha256.as_bytes().as_slice(),
                &words::column(new.size_bytes),
                &new.media_type,
            ],
        )
        .await?;
    Ok(())
}

/// The artifacts of some attempts.
pub async fn of_attempts(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    ids: &[AttemptId],
) -> Result<HashMap<AttemptId, Vec<ArtifactRef>>, StoreError> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.as_uuid()).collect();
    let statement = transaction.prepare_cached(OF_ATTEMPTS).await?;
    let rows = transaction.query(&statement, &[&organization.as_uuid(), &ids]).await?;
    let mut found: HashMap<AttemptId, Vec<ArtifactRef>> = HashMap::new();
    for row in rows {
        found.entry(AttemptId(row.get(0))).or_default().push(read(&row)?);
    }
    Ok(found)
}

/// Up to `count` artifacts of one attempt, by name, after the name `after`.
///
/// # Errors
/// The database failed.
pub async fn page(
    database: &Database,
    organization: OrganizationId,
    id: AttemptId,
    after: Option<&str>,
    count: i64,
) -> Result<Vec<ArtifactRef>, StoreError> {
    let transaction = database.begin_hot(organization).await?;
    let statement = transaction.prepare_cached(PAGE).await?;
    let (organization, id) = (organization.as_uuid(), id.as_uuid());
    let rows = transaction
        .query(&statement, &[&organization, &id, &after, &count])
        .await?;
    transaction.rollback().await?;
    rows.iter().map(read).collect()
}

/// The artifact of that name of one attempt.
///
/// # Errors
/// The database failed.
pub async fn named(
    database: &Database,
    organization: OrganizationId,
    id: AttemptId,
    name: &str,
) -> Result<Option<ArtifactRef>, StoreError> {
    let transaction = database.begin_hot(organization).await?;
    let statement = transaction.prepare_cached(NAMED).await?;
    let row = transaction
        .query_opt(&statement, &[&organization.as_uuid(), &id.as_uuid(), &name])
        .await?;
    transaction.rollback().await?;
    row.as_ref().map(read).transpose()
}

/// The newest artifact of that name in an operation.
///
/// # Errors
/// The database failed.
pub async fn of_operation(
    database: &Database,
    organization: OrganizationId,
    operation: OperationId,
    name: &str,
) -> Result<Option<ArtifactRef>, StoreError> {
    let transaction = database.begin_hot(organization).await?;
    let statement = transaction.prepare_cached(OF_OPERATION).await?;
    let row = transaction
        .query_opt(&statement, &[&organization.as_uuid(), &operation.as_uuid(), &name])
        .await?;
    transaction.rollback().await?;
    row.as_ref().map(read).transpose()
}

fn read(row: &Row) -> Result<ArtifactRef, StoreError> {
    Ok(ArtifactRef {
        id: row.get(1),
        artifact_type: row.get(2),
        storage: ArtifactStorage::S3,
        uri: row.get(3),
        sensitivity: words::sensitivity(row.get(4))?,
        produced_by: ProducedBy {
            operation_id: OperationId(row.get(5)),
            plan_node_id: row.get(6),
        },
        name: Some(row.get(7)),
        sha256: Some(words::digest(row.get(8))?),
        size_bytes: Some(words::count(row.get(9))),
        media_type: row.get(10),
    })
}
