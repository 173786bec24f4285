//! Which runner is calling.

use api_kit::{Caller, Problem};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use execution_plane_api::problem_codes;
use kernel::id::{AttemptId, OrganizationId, RunnerId};

use crate::store::granted::Grantee;
use crate::store::report::Reporter;

/// A runner in one of its sessions, as its token says: `runner:ID:SESSION`. A token that names no
/// session is of none that exists.
#[derive(Debug, Clone, Copy)]
pub struct RunnerIdentity {
    pub organization: OrganizationId,
    pub grantee: Grantee,
}

impl RunnerIdentity {
    /// The subject of the token of a session.
    pub fn subject(runner: RunnerId, session: u64) -> String {
        format!("runner:{runner}:{session}")
    }

    /// The runner that `caller` is, if it is one.
    pub fn of(caller: &Caller) -> Option<Self> {
        let subject = caller.subject.strip_prefix("runner:")?;
        let (id, session) = subject.split_once(':').unwrap_or((subject, "0"));
        Some(Self {
            organization: caller.organization,
            grantee: Grantee {
                runner: id.parse().ok()?,
                session: session.parse().ok()?,
            },
        })
    }

    /// As the writer of one of its attempts.
    pub const fn reporter(self, attempt: AttemptId, epoch: u64) -> Reporter {
        Reporter {
            organization: self.organization,
            grantee: self.grantee,
            attempt,
            epoch,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for RunnerIdentity {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, state).await?;
        Self::of(&caller).ok_or_else(|| {
            Problem::forbidden("This takes a runner's own token.")
                .remedy("Exchange the enrolment token at POST /v1/runner/sessions.")
        })
    }
}

/// 401: a newer session of the runner exists.
pub fn superseded() -> Problem {
    Problem::unauthenticated(
        problem_codes::SESSION_SUPERSEDED,
        "A newer session of this runner exists.",
    )
    .remedy("End all jobs. If this is the process that is meant to live, open a session again.")
}
