//! Applying a service's migrations, as its owner.

use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::Connection as _;
use sqlx::migrate::Migrator;

use crate::error::DatabaseError;
use crate::url::{DatabaseUrl, SessionSettings};

/// Applies what is missing. Safe when several processes start at once: one applies, the others wait
/// for it. A migration that was applied and has since changed is refused. What a newer version of the
/// service has applied beyond is let be: its migrations keep what this version uses, so that both can run
/// side by side and this one can start again.
///
/// # Errors
/// The database cannot be reached, or a migration failed.
pub async fn migrate(owner: &DatabaseUrl, migrator: &Migrator) -> Result<(), DatabaseError> {
    let session = SessionSettings {
        statement_timeout: Duration::ZERO,
        idle_in_transaction_timeout: Duration::ZERO,
    };
    let mut connection = owner.sqlx_options("migrate", session).connect().await?;
    let mut known = Migrator::with_migrations(migrator.iter().cloned().collect());
    known.set_ignore_missing(true);
    known.run(&mut connection).await.map_err(DatabaseError::Migrate)?;
    connection.close().await?;
    Ok(())
}
