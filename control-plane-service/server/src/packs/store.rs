//! The tables `packs` and `content_deliveries`, as far as packs are concerned.

use chrono::{DateTime, Utc};
use control_plane_scenario::Pack;
use kernel::Sha256Digest;
use kernel::id::OrganizationId;
use sqlx::PgConnection;

/// A published version without its archive.
pub struct PackRow {
    pub name: String,
    pub version: String,
    pub digest: Sha256Digest,
    pub content_digest: Option<Sha256Digest>,
    pub content_delivered_at: Option<DateTime<Utc>>,
    pub description: String,
    pub templates: Vec<String>,
    pub published_at: DateTime<Utc>,
    pub published_by: String,
}

/// A digest as stored; the table's check makes sure of its length.
pub fn digest(bytes: &[u8]) -> Sha256Digest {
    <[u8; 32]>::try_from(bytes).map_or_else(|_| Sha256Digest::of(bytes), Sha256Digest::from_bytes)
}

/// Publishes; false when the version is there already.
pub async fn insert(
    connection: &mut PgConnection,
    organization: OrganizationId,
    pack: &Pack,
    archive: &[u8],
    subject: &str,
) -> Result<bool, sqlx::Error> {
    let templates: Vec<String> = pack.templates.keys().cloned().collect();
    let content = pack.content.as_ref().map(|content| content.digest);
    let version = pack.version.to_string();
    let inserted = sqlx::query!(
        "INSERT INTO packs (organization_id, name, version, digest, content_digest, description, templates, archive, published_by)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING",
        organization.as_uuid(),
        pack.name,
        version,
        pack.digest.as_bytes(),
        content.as_ref().map(|digest| digest.as_bytes().as_slice()),
        pack.description,
        &templates,
        archive,
        subject,
    )
    .execute(&mut *connection)
    .await?;
    if inserted.rows_affected() == 0 {
        return Ok(false);
    }
    if let Some(content) = content {
        sqlx::query!(
            "INSERT INTO content_deliveries (organization_id, sha256, pack, pack_version)
             VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
            organization.as_uuid(),
            content.as_bytes(),
            pack.name,
            version,
        )
        .execute(connection)
        .await?;
    }
    Ok(true)
}

/// One version.
pub async fn find(connection: &mut PgConnection, name: &str, version: &str) -> Result<Option<PackRow>, sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT p.name, p.version, p.digest, p.content_digest, d.delivered_at AS "delivered_at?", p.description,
                  p.templates, p.published_at, p.published_by
           FROM packs p
           LEFT JOIN content_deliveries d ON d.organization_id = p.organization_id AND d.sha256 = p.content_digest
           WHERE p.name = $1 AND p.version = $2"#,
        name,
        version,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| PackRow {
        name: row.name,
        version: row.version,
        digest: digest(&row.digest),
        content_digest: row.content_digest.as_deref().map(digest),
        content_delivered_at: row.delivered_at,
        description: row.description,
        templates: row.templates,
        published_at: row.published_at,
        published_by: row.published_by,
    }))
}

/// Versions after a name and version, by both.
pub async fn page(connection: &mut PgConnection, after: (&str, &str), limit: i64) -> Result<Vec<PackRow>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT p.name, p.version, p.digest, p.content_digest, d.delivered_at AS "delivered_at?", p.description,
                  p.templates, p.published_at, p.published_by
           FROM packs p
           LEFT JOIN content_deliveries d ON d.organization_id = p.organization_id AND d.sha256 = p.content_digest
           WHERE (p.name, p.version) > ($1, $2) ORDER BY p.name, p.version LIMIT $3"#,
        after.0,
        after.1,
        limit,
    )
    .fetch_all(connection)
    .await?;
    let rows = rows.into_iter().map(|row| PackRow {
        name: row.name,
        version: row.version,
        digest: digest(&row.digest),
        content_digest: row.content_digest.as_deref().map(digest),
        content_delivered_at: row.delivered_at,
        description: row.description,
        templates: row.templates,
        published_at: row.published_at,
        published_by: row.published_by,
    });
    Ok(rows.collect())
}

/// The published versions of a pack with their digests.
pub async fn versions(connection: &mut PgConnection, name: &str) -> Result<Vec<(String, Sha256Digest)>, sqlx::Error> {
    let rows = sqlx::query!("SELECT version, digest FROM packs WHERE name = $1", name)
        .fetch_all(connection)
        .await?;
    Ok(rows.into_iter().map(|row| (row.version, digest(&row.digest))).collect())
}

/// The files of a version.
pub async fn archive(connection: &mut PgConnection, name: &str, version: &str) -> Result<Option<Vec<u8>>, sqlx::Error> {
    sqlx::query_scalar!(
        "SELECT archive FROM packs WHERE name = $1 AND version = $2",
        name,
        version
    )
    .fetch_optional(connection)
    .await
}
