//! Telling an answer that settles an effect from one that does not.

use client_kit::{ClientError, Problem};

use super::Unsettled;

/// What a refused call means: a definite no (a 4xx about the request itself), or nothing at all: no
/// answer, a server in trouble, a token or a role that is not right yet. The latter is for an operator
/// to mend and fails no operation.
pub fn refusal(dependency: &'static str, error: ClientError) -> Result<Problem, Unsettled> {
    match error {
        ClientError::Problem(problem) if is_definite(problem.status) => Ok(*problem),
        cause => Err(Unsettled {
            dependency,
            cause: Box::new(cause),
        }),
    }
}

const fn is_definite(status: u16) -> bool {
    matches!(status, 400..=499) && !matches!(status, 401 | 403 | 408 | 425 | 429)
}

/// A problem in one line, for people.
pub fn in_words(problem: &Problem) -> String {
    let mut words = if problem.detail.is_empty() {
        problem.title.clone()
    } else {
        problem.detail.clone()
    };
    for error in problem.errors.iter().take(5) {
        words.push_str(&format!("; {}: {}", error.pointer, error.detail));
    }
    words
}
