//! Preparing statements ahead, so that queries that are sent together run in the order in which they
//! are written: one that has yet to be prepared would fall behind those that are.

use database::OrgTransaction;

use super::error::StoreError;

/// Prepares what this connection has not prepared yet; costs nothing when it has.
pub async fn prepare(transaction: &OrgTransaction, statements: &[&str]) -> Result<(), StoreError> {
    for sql in statements {
        transaction.prepare_cached(sql).await?;
    }
    Ok(())
}
