//! From faults inside to what a caller is told: logged once, here, with the whole chain of causes.

use core::error::Error;

use database::DatabaseError;

use crate::Problem;

/// 500 without detail; `error` and its causes go to the log.
#[must_use]
pub fn internal_problem(error: &dyn Error) -> Problem {
    tracing::error!(error = chain(error), "a request failed inside");
    Problem::internal()
}

/// 503 when trying again may help, else 500. The cause goes to the log.
#[must_use]
pub fn database_problem(error: &DatabaseError) -> Problem {
    if error.is_transient() {
        tracing::warn!(error = chain(error), "the database is not available");
        Problem::unavailable("The database is not available at the moment.")
    } else {
        internal_problem(error)
    }
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
