//! Applying a service's migrations, as its owner.

use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::Connection as _;
use sqlx::migrate::Migrator;

use crate::error::DatabaseError;
use crate::url::{DatabaseUrl, SessionSettings};

/// Applies what is missing. Safe when several processes start at once: one applies, the others wait
/// for it. A migration that was applied and has since changed is refused.
///
/// # Errors
/// The database cannot be reached, or a migration failed.
pub async fn migrate(owner: &DatabaseUrl, migrator: &Migrator) -> Result<(), DatabaseError> {
    let session = SessionSettings {
        statement_timeout: Duration::ZERO,
        idle_in_transaction_timeout: Duration::ZERO,
    };
    let mut connection = owner.sqlx_options("migrate", session).connect().await?;
    migrator.run(&mut connection).await.map_err(DatabaseError::Migrate)?;
    connection.close().await?;
    Ok(())
}
