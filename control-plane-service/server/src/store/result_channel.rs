//! Table `result_channels`: whose results someone must listen for, also after the last operation ended.
//! The worker role sees them all.

use database::OrgTransaction;
use kernel::id::OrganizationId;

use super::StoreError;
use super::statement::{column, execute, query};

/// Makes an organization known.
pub async fn open(tx: &OrgTransaction, organization: OrganizationId) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO result_channels (organization_id) VALUES ($1) ON CONFLICT DO NOTHING";
    execute(tx, SQL, &[&organization.0]).await?;
    Ok(())
}

/// Every organization that is known.
pub async fn all(tx: &OrgTransaction) -> Result<Vec<OrganizationId>, StoreError> {
    query(tx, "SELECT organization_id FROM result_channels", &[])
        .await?
        .iter()
        .map(|row| column(row, 0, "result channel").map(OrganizationId))
        .collect()
}
