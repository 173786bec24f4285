//! What can go wrong between the catalog and its database.

use api_kit::Problem;
use database::DatabaseError;

use crate::registry::RegistryError;

/// A failure of the store. Never a refusal: those are decided by the domain.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the database failed")]
    Database(#[from] DatabaseError),
    #[error("stored definitions do not resolve")]
    Registry(#[from] RegistryError),
    /// A stored value is not what this code writes.
    #[error("the stored {what} cannot be read")]
    Unreadable {
        what: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StoreError {
    /// A stored `what` cannot be read.
    pub fn unreadable(what: &'static str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unreadable {
            what,
            source: source.into(),
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.into())
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Database(database) => api_kit::database_problem(database),
            _ => api_kit::internal_problem(&error),
        }
    }
}
