//! The rows of operations, as the engine reads and writes them: tokio-postgres, many rows of many
//! operations a statement, statements pipelined.
//!
//! Invariants: everything here runs inside a transaction that names the organization; rows of an
//! operation are written only by who holds its lock ([`operation::lock`]); the domain's rows are kept
//! whole, so what a decision changed is what is stored.

pub mod attempt;
pub mod binding;
pub mod claim;
pub mod effect;
pub mod event;
pub mod gate;
pub mod inbox;
pub mod intervention;
pub mod load;
pub mod node_run;
pub mod operation;
pub mod plan_revision;
pub mod resource_update;
pub mod result_channel;
pub mod run;
pub(crate) mod statement;
pub mod wakeup;
pub mod writes;

use database::DatabaseError;

/// The store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the database did not do what it was asked")]
    Database(#[from] DatabaseError),
    /// A row cannot be read as what it must be.
    #[error("a stored {what} cannot be read")]
    Corrupt {
        what: &'static str,
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StoreError {
    pub(crate) fn corrupt(what: &'static str) -> impl FnOnce(Box<dyn std::error::Error + Send + Sync>) -> Self {
        move |cause| Self::Corrupt { what, cause }
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}
