//! Why the store failed.

use database::DatabaseError;

/// A fault below the rules: the database, or what it holds.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the database failed")]
    Database(#[source] DatabaseError),
    /// Another transaction stored the same attempt in the same moment. Nothing was stored by this
    /// one; run again, it sees the other's.
    #[error("another transaction stored the same attempt")]
    Raced,
    /// What was stored is not what this version writes.
    #[error("a stored {what} cannot be read")]
    Corrupt {
        what: &'static str,
        #[source]
        source: Box<dyn core::error::Error + Send + Sync>,
    },
}

impl StoreError {
    /// For `map_err`, where stored text is read.
    pub fn corrupt<E: Into<Box<dyn core::error::Error + Send + Sync>>>(what: &'static str) -> impl Fn(E) -> Self {
        move |source| Self::Corrupt {
            what,
            source: source.into(),
        }
    }
}

impl From<DatabaseError> for StoreError {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error)
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.into())
    }
}
