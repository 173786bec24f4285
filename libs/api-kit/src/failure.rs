//! From faults inside to what a caller is told: logged once, here, with the whole chain of causes.

use core::error::Error;

use database::{DatabaseError, SqlState};
use kernel::with_causes;

use crate::Problem;

/// 500 without detail; `error` and its causes go to the log.
#[must_use]
pub fn internal_problem(error: &dyn Error) -> Problem {
    tracing::error!(error = with_causes(error), "a request failed inside");
    Problem::internal()
}

/// 503 when trying again may help, else 500. The cause goes to the log.
#[must_use]
pub fn database_problem(error: &DatabaseError) -> Problem {
    if error.sql_state() == Some(SqlState::DiskFull) {
        tracing::error!(error = with_causes(error), "the database has no disk space left");
        Problem::storage_full()
    } else if error.is_transient() {
        tracing::warn!(error = with_causes(error), "the database is not available");
        Problem::unavailable("The database is not available at the moment.")
    } else {
        internal_problem(error)
    }
}
