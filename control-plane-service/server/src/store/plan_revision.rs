//! Table `plan_revisions`: the plan's bytes as they were digested.

use control_plane_plan::PlanDocument;
use database::OrgTransaction;
use kernel::Sha256Digest;
use kernel::id::{OperationId, OrganizationId, PlanId};
use tokio_postgres::types::Json;

use super::StoreError;
use super::statement::{column, execute, query};

/// Adds a revision.
pub async fn insert(
    tx: &OrgTransaction,
    organization: OrganizationId,
    operation: OperationId,
    revision: u32,
    plan_id: PlanId,
    document: &PlanDocument,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO plan_revisions (operation_id, revision, organization_id, plan_id, digest, scenario, document) \
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let digest = document.digest();
    let digest: &[u8] = digest.as_bytes().as_slice();
    execute(
        tx,
        SQL,
        &[
            &operation.0,
            &(revision as i32),
            &organization.0,
            &plan_id.0,
            &digest,
            &Json(&document.plan().scenario),
            &document.bytes(),
        ],
    )
    .await?;
    Ok(())
}

/// Reads a revision, checked against its digest.
pub async fn find(
    tx: &OrgTransaction,
    operation: OperationId,
    revision: u32,
) -> Result<Option<PlanDocument>, StoreError> {
    const SQL: &str = "SELECT digest, document FROM plan_revisions WHERE operation_id = $1 AND revision = $2";
    let rows = query(tx, SQL, &[&operation.0, &(revision as i32)]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    open(column(row, 0, "plan")?, column(row, 1, "plan")?).map(Some)
}

/// A stored document, checked against the digest it was stored under.
pub fn open(digest: Vec<u8>, document: Vec<u8>) -> Result<PlanDocument, StoreError> {
    let digest: [u8; 32] = digest
        .try_into()
        .map_err(|_| StoreError::corrupt("plan digest")("it is not 32 bytes long".into()))?;
    PlanDocument::open(document, Sha256Digest::from_bytes(digest))
        .map_err(|error| StoreError::corrupt("plan")(Box::new(error)))
}
