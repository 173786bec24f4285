//! A lease as it leaves the store.

use std::time::Instant;

use contracts::JobSpec;
use kernel::id::{AttemptId, RunnerId};

use super::lookups::PolicyVersion;

/// Who is given an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grantee {
    pub runner: RunnerId,
    pub session: u64,
}

/// One attempt that is durably a runner's.
#[derive(Debug, Clone)]
pub struct Granted {
    pub attempt_id: AttemptId,
    pub epoch: u64,
    pub spec: JobSpec,
    pub policy: Option<PolicyVersion>,
    pub content_bytes: Option<u64>,
    pub cancel_requested: bool,
    /// A moment not after the one from which the database counts the lease.
    pub since: Instant,
}
