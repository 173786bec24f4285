//! What a session with the service allows, counted by this machine's monotonic clock: the wall clock of a runner
//! may tell any time.

use std::time::Duration;

use chrono::Utc;
use execution_plane_api::RunnerSession;
use tokio::time::Instant;

/// How long a pull waits for a lease, at most.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// The terms of the present session, and when to ask for the next.
pub(crate) struct Session {
    lease: Duration,
    pub(crate) rotate_at: Instant,
}

impl Session {
    pub(crate) fn of(session: &RunnerSession) -> Self {
        let valid = match session.valid_seconds {
            Some(seconds) => Duration::try_from_secs_f64(seconds).unwrap_or_default(),
            // A service of an earlier version.
            None => (session.expires_at - Utc::now()).to_std().unwrap_or_default(),
        };
        Self {
            lease: Duration::try_from_secs_f64(session.lease_seconds).unwrap_or(Duration::from_secs(30)),
            rotate_at: Instant::now() + valid.mul_f64(0.66),
        }
    }

    /// How long before its deadline a lease that was not renewed ends its job.
    pub(crate) fn margin(&self) -> Duration {
        (self.lease / 4).min(Duration::from_secs(5))
    }

    /// How long a call may wait at the service. A lease is counted from when its call was *sent*, so a
    /// wait of a pull and a wait of a renewal together must leave more than the margin.
    pub(crate) fn wait(&self) -> Duration {
        (self.lease / 4).min(LONGEST_WAIT)
    }
}
