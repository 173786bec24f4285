//! The table `plans`.

use chrono::{DateTime, Utc};
use control_plane_plan::{Advice, PlanDocument, PlanError, ScenarioPin};
use kernel::id::{OperationId, OrganizationId, PlanId};
use serde_json::Value;
use sqlx::PgConnection;

use crate::packs::digest_of;

/// A plan to keep, or the account of why there is none.
pub struct NewPlan<'a> {
    pub id: PlanId,
    pub scenario: &'a ScenarioPin,
    pub environment: &'a str,
    pub document: Option<&'a PlanDocument>,
    pub advice: &'a Advice,
    pub subject: &'a str,
}

/// A kept plan.
pub struct PlanRow {
    pub id: PlanId,
    pub document: Option<PlanDocument>,
    pub advice: Advice,
    pub created_at: DateTime<Utc>,
    pub created_by: String,
}

/// Why a plan could not be read back.
#[derive(Debug, thiserror::Error)]
pub enum PlanStoreError {
    #[error("the store cannot be reached")]
    Store(#[from] sqlx::Error),
    #[error("a stored plan is not what was stored")]
    Document(#[from] PlanError),
    #[error("a stored plan's advice cannot be read")]
    Advice(#[from] serde_json::Error),
}

/// Keeps a plan; says when.
pub async fn insert(
    connection: &mut PgConnection,
    organization: OrganizationId,
    plan: &NewPlan<'_>,
) -> Result<DateTime<Utc>, PlanStoreError> {
    let advice = serde_json::to_value(plan.advice)?;
    let digest = plan.document.map(PlanDocument::digest);
    let created = sqlx::query_scalar!(
        "INSERT INTO plans (id, organization_id, pack, pack_version, template, environment, digest, document, advice, created_by)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING created_at",
        plan.id.as_uuid(),
        organization.as_uuid(),
        plan.scenario.pack,
        plan.scenario.pack_version,
        plan.scenario.template,
        plan.environment,
        digest.as_ref().map(|digest| digest.as_bytes().as_slice()),
        plan.document.map(PlanDocument::bytes),
        advice,
        plan.subject,
    )
    .fetch_one(connection)
    .await?;
    Ok(created)
}

/// A plan, its bytes checked against the digest that they were stored under.
pub async fn find(connection: &mut PgConnection, id: PlanId) -> Result<Option<PlanRow>, PlanStoreError> {
    let row = sqlx::query!(
        r#"SELECT digest, document, advice AS "advice: Value", created_at, created_by FROM plans WHERE id = $1"#,
        id.as_uuid()
    )
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let document = match (row.document, row.digest) {
        (Some(bytes), Some(digest)) => Some(PlanDocument::open(bytes, digest_of(&digest))?),
        _ => None,
    };
    Ok(Some(PlanRow {
        id,
        document,
        advice: serde_json::from_value(row.advice)?,
        created_at: row.created_at,
        created_by: row.created_by,
    }))
}

/// What a preview told beside a plan.
pub async fn advice(connection: &mut PgConnection, id: PlanId) -> Result<Option<Advice>, PlanStoreError> {
    let found = sqlx::query_scalar!(
        r#"SELECT advice AS "advice: Value" FROM plans WHERE id = $1"#,
        id.as_uuid()
    )
    .fetch_optional(connection)
    .await?;
    Ok(found.map(serde_json::from_value).transpose()?)
}

/// The operation that carries the plan out.
pub async fn operation(connection: &mut PgConnection, id: PlanId) -> Result<Option<OperationId>, sqlx::Error> {
    let found = sqlx::query_scalar!(
        "SELECT operation_id FROM plan_revisions WHERE plan_id = $1 LIMIT 1",
        id.as_uuid()
    )
    .fetch_optional(connection)
    .await?;
    Ok(found.map(OperationId))
}
