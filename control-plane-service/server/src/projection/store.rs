//! The tables `projection_cursors`, `projected_resources`, `projected_edges` and `parked_resources`.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use database::{Database, DatabaseError, Scope};
use kernel::id::OrganizationId;
use sqlx::PgConnection;

use super::row::Projected;
use crate::points;

/// How far a copy is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    pub revision: i64,
    pub head: i64,
    pub applied_at: Option<DateTime<Utc>>,
    pub generation: i32,
    pub rebuild_asked: bool,
    pub rebuilt_at: Option<DateTime<Utc>>,
    pub gaps: i64,
}

/// A resource to set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    pub resource_id: String,
    pub revision: i64,
    pub problem: String,
    pub fact: String,
}

/// Makes the organization one that is followed; false when it was already.
pub async fn follow(database: &Database, organization: OrganizationId) -> Result<bool, DatabaseError> {
    let mut tx = database.begin(organization).await?;
    let inserted = sqlx::query!(
        "INSERT INTO projection_cursors (organization_id) VALUES ($1) ON CONFLICT DO NOTHING",
        organization.as_uuid()
    )
    .execute(&mut *tx)
    .await?;
    if inserted.rows_affected() == 0 {
        return Ok(false);
    }
    points::hit("control_plane.follow.before_commit");
    tx.commit().await?;
    points::hit("control_plane.follow.after_commit");
    Ok(true)
}

/// Everyone who is followed.
pub async fn organizations(database: &Database) -> Result<Vec<OrganizationId>, DatabaseError> {
    let mut tx = database.begin(Scope::All).await?;
    let all = sqlx::query_scalar!("SELECT organization_id FROM projection_cursors")
        .fetch_all(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(all.into_iter().map(OrganizationId).collect())
}

/// Asks for a rebuild.
pub async fn ask_rebuild(database: &Database, organization: OrganizationId) -> Result<(), DatabaseError> {
    let mut tx = database.begin(organization).await?;
    want_rebuild(&mut tx, organization).await?;
    points::hit("control_plane.rebuild_asked.before_commit");
    tx.commit().await?;
    points::hit("control_plane.rebuild_asked.after_commit");
    Ok(())
}

/// Asks for a rebuild in the caller's transaction.
pub async fn want_rebuild(connection: &mut PgConnection, organization: OrganizationId) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE projection_cursors SET rebuild_asked = true WHERE organization_id = $1",
        organization.as_uuid()
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Where the organization's copy is; `None` when it is not followed.
pub async fn cursor(
    connection: &mut PgConnection,
    organization: OrganizationId,
) -> Result<Option<Cursor>, sqlx::Error> {
    sqlx::query_as!(
        Cursor,
        "SELECT revision, head, applied_at, generation, rebuild_asked, rebuilt_at, gaps FROM projection_cursors
         WHERE organization_id = $1",
        organization.as_uuid()
    )
    .fetch_optional(connection)
    .await
}

/// Locks the cursor where it is expected to be; false when another follower moved it.
pub async fn lock_at(
    connection: &mut PgConnection,
    organization: OrganizationId,
    revision: i64,
    generation: i32,
) -> Result<bool, sqlx::Error> {
    let found = sqlx::query_scalar!(
        "SELECT revision FROM projection_cursors
         WHERE organization_id = $1 AND revision = $2 AND generation = $3 FOR UPDATE",
        organization.as_uuid(),
        revision,
        generation,
    )
    .fetch_optional(connection)
    .await?;
    Ok(found.is_some())
}

/// Moves the cursor. `gaps` are added; the head is the newest ever heard of.
pub async fn advance(
    connection: &mut PgConnection,
    organization: OrganizationId,
    revision: i64,
    head: i64,
    gaps: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE projection_cursors SET revision = $2::bigint, head = greatest($3::bigint, $2::bigint), gaps = gaps + $4, applied_at = now()
         WHERE organization_id = $1",
        organization.as_uuid(),
        revision,
        head,
        gaps,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Says that the copy is fresh although nothing came.
pub async fn heard(connection: &mut PgConnection, organization: OrganizationId, head: i64) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE projection_cursors SET head = greatest(head, $2), applied_at = now() WHERE organization_id = $1",
        organization.as_uuid(),
        head,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Ends a rebuild: the copy is what the snapshot was.
pub async fn rebuilt(
    connection: &mut PgConnection,
    organization: OrganizationId,
    revision: i64,
    generation: i32,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE projection_cursors SET revision = $2, head = greatest(head, $2), generation = $3, applied_at = now(),
         rebuilt_at = now(), rebuild_asked = false WHERE organization_id = $1",
        organization.as_uuid(),
        revision,
        generation,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The known versions of some resources.
pub async fn versions(
    connection: &mut PgConnection,
    resource_ids: &[String],
) -> Result<HashMap<String, i64>, sqlx::Error> {
    let rows = sqlx::query!(
        "SELECT resource_id, version FROM projected_resources WHERE resource_id = ANY($1)",
        resource_ids
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| (row.resource_id, row.version)).collect())
}

/// Writes rows, each once, with their edges. Within a generation a later version stays; a new generation,
/// which is a snapshot, is right whatever it replaces.
pub async fn write(
    connection: &mut PgConnection,
    organization: OrganizationId,
    generation: i32,
    rows: &[Projected],
) -> Result<(), sqlx::Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let rows = serde_json::to_value(rows).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    let written = sqlx::query_file_scalar!(
        "src/projection/write_resources.sql",
        organization.as_uuid(),
        generation,
        rows
    )
    .fetch_all(&mut *connection)
    .await?;
    sqlx::query!("DELETE FROM projected_edges WHERE source = ANY($1)", &written)
        .execute(&mut *connection)
        .await?;
    sqlx::query_file!("src/projection/write_edges.sql", organization.as_uuid(), rows, &written)
        .execute(&mut *connection)
        .await?;
    sqlx::query!("DELETE FROM parked_resources WHERE resource_id = ANY($1)", &written)
        .execute(connection)
        .await?;
    Ok(())
}

/// Removes what a finished snapshot lacked. What it has and could not be read stays as it was, set aside.
pub async fn sweep(
    connection: &mut PgConnection,
    organization: OrganizationId,
    generation: i32,
    revision: i64,
) -> Result<u64, sqlx::Error> {
    let gone = sqlx::query_scalar!(
        "DELETE FROM projected_resources r WHERE organization_id = $1 AND generation < $2 AND NOT EXISTS (
             SELECT 1 FROM parked_resources p
             WHERE p.organization_id = $1 AND p.resource_id = r.resource_id AND p.revision >= $3)
         RETURNING resource_id",
        organization.as_uuid(),
        generation,
        revision,
    )
    .fetch_all(&mut *connection)
    .await?;
    sqlx::query!("DELETE FROM projected_edges WHERE source = ANY($1)", &gone)
        .execute(&mut *connection)
        .await?;
    sqlx::query!("DELETE FROM parked_resources WHERE revision < $1", revision)
        .execute(connection)
        .await?;
    Ok(gone.len() as u64)
}

/// Sets resources aside; the latest problem of each is the one that is shown.
pub async fn park(
    connection: &mut PgConnection,
    organization: OrganizationId,
    parked: &[Parked],
) -> Result<(), sqlx::Error> {
    for one in parked {
        sqlx::query!(
            "INSERT INTO parked_resources (organization_id, resource_id, revision, problem, fact)
             VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (organization_id, resource_id)
             DO UPDATE SET revision = excluded.revision, problem = excluded.problem, fact = excluded.fact",
            organization.as_uuid(),
            one.resource_id,
            one.revision,
            one.problem,
            one.fact,
        )
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}
