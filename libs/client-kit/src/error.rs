//! Why a call has no result, told apart by what a caller does about it.

use problem::Problem;

/// Why a call has no result. Never carries a token.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The base address is no HTTP address.
    #[error("{0:?} is not the address of a service: it looks like http://HOST:PORT")]
    Address(String),
    /// No token could be made for the call.
    #[error("no token could be made for the call")]
    Token(#[source] identity::MintError),
    /// The request could not be written, for example a query that is no flat record.
    #[error("the request to {url} cannot be written")]
    Request {
        /// Where it would have gone.
        url: String,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// No answer: the service may or may not have done what was asked.
    #[error("{url} cannot be reached")]
    Unreachable {
        /// Where it went.
        url: String,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// The service answered with a problem.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// An error status without a problem document: something else answered.
    #[error("{url} answered {status} without a problem document: is this a platform service?")]
    NotAPlatform {
        /// Where it went.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// The answer is not what this call gives.
    #[error("the answer of {url} cannot be read")]
    Answer {
        /// Where it came from.
        url: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl ClientError {
    /// The problem, when the service answered with one.
    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem(problem) => Some(problem),
            _ => None,
        }
    }

    /// The problem's stable code.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.problem().map(|problem| problem.code.as_str())
    }

    /// The HTTP status of an answered error.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Problem(problem) => Some(problem.status),
            Self::NotAPlatform { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether the same call may go through later: no answer, or an answer that says so (429, 502, 503, 504).
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Problem(problem) => matches!(problem.status, 429 | 502..=504),
            Self::NotAPlatform { status, .. } => matches!(status, 429 | 502..=504),
            _ => false,
        }
    }
}
