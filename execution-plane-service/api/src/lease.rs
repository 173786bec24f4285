//! Leases: how a runner gets work and keeps it.
//!
//! The protocol of a runner:
//! 1. `POST /v1/runner/sessions` with its enrolment token or with a runner token that still holds,
//!    and the `instance` of its process: runner id, session, runner token. The same instance keeps
//!    its session (the token is rotated, the older one holds until it expires). Another instance of
//!    the same name begins a new session, which supersedes the older one: its calls are answered 401
//!    `session_superseded` from then on.
//! 2. `POST /v1/runner/leases/pull` in a loop, one outstanding call at a time. `held` lists every
//!    attempt that the runner has received and whose finish was not yet acknowledged.
//!    - A lease that this *session* was granted and does not list is sent again (its answer was
//!      lost on the way): a runner ignores an attempt it has already seen in this session.
//!    - A lease of an *earlier* session that is not listed is declared lost at once. So, before its
//!      first pull, a restarted runner has either re-adopted what its earlier self left (and lists
//!      it) or ended every process of it.
//!    - A lease of an earlier session that is listed is this session's from then on. Until then every
//!      write about it is answered 409 `stale_epoch` and a renewal calls it `gone`: a refusal proves
//!      that an attempt is over only when a pull sent after it says so.
//!    - What is listed and no longer the runner's comes back under `gone`: end it, report nothing.
//! 3. `POST /v1/runner/leases/renew` in a loop, as a long poll of at most a third of the lease. A
//!    runner that could not renew stops its own jobs before the deadline, counted by its own
//!    monotonic clock from the moment it *sent* the last call that was answered `ok`.
//! 4. `started` (optional), `output` in order, `artifacts`, then `finish`, once.
//!
//! Every write carries the lease's `epoch`; a stale one is 409 `stale_epoch`, an attempt of another
//! runner is 404.

use contracts::JobSpec;
use kernel::Sha256Digest;
use kernel::id::AttemptId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::command_policy::CommandPolicyBody;

/// An attempt that a runner says it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub struct HeldAttempt {
    pub attempt_id: AttemptId,
    pub epoch: u64,
    /// The runner knows that a cancel was asked for; renew need not tell it again at once.
    #[serde(default)]
    pub cancelling: bool,
}

/// `POST /v1/runner/leases/pull`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeasePullRequest {
    /// How many more attempts the runner can take now, at most 10,000; 0 asks for none (draining, or full).
    #[schema(maximum = 10_000)]
    pub free_slots: u32,
    #[serde(default)]
    pub held: Vec<HeldAttempt>,
    /// How long to wait for a first lease; at most 30.
    #[serde(default)]
    #[schema(maximum = 30)]
    pub wait_seconds: u32,
}

/// The policy that an attempt was submitted under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeasedPolicy {
    pub name: String,
    pub version: u64,
    pub body: CommandPolicyBody,
}

/// The bundle to fetch from `GET /v1/runner/attempts/{id}/content` and to verify.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeasedContent {
    pub sha256: Sha256Digest,
    pub size_bytes: u64,
}

/// One attempt granted to this runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Lease {
    pub attempt_id: AttemptId,
    pub epoch: u64,
    /// The time left when the answer was written, by the service's database clock. Runners count
    /// from the moment they sent the request: their count ends earlier, never later.
    pub deadline_in_seconds: f64,
    /// A cancel was asked for already: report it cancelled, start nothing.
    #[serde(default)]
    pub cancel_requested: bool,
    pub job: JobSpec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_policy: Option<LeasedPolicy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<LeasedContent>,
}

/// New leases; an empty list when none came within the wait.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LeasePullResponse {
    pub leases: Vec<Lease>,
    /// Listed as held, but no longer (or never) this runner's under that epoch.
    #[serde(default)]
    pub gone: Vec<AttemptId>,
}

/// `POST /v1/runner/leases/renew`: extends every lease listed, at once; then waits, up to
/// `wait_seconds`, for something worth telling (a cancel not yet known, a lease gone).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseRenewRequest {
    pub held: Vec<HeldAttempt>,
    /// At most 30; not more than a third of the lease is waited.
    #[serde(default)]
    #[schema(maximum = 30)]
    pub wait_seconds: u32,
}

/// What a renewal found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RenewOutcome {
    /// Extended.
    Ok,
    /// Extended, and the job is to be ended and reported cancelled.
    CancelRequested,
    /// Not this runner's (any more): end the job, report nothing.
    Gone,
}

/// One lease after a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RenewedLease {
    pub attempt_id: AttemptId,
    pub epoch: u64,
    pub outcome: RenewOutcome,
    /// As in [`Lease`]; null when gone. Counted from the renewal, which is made when the call
    /// comes in.
    pub deadline_in_seconds: Option<f64>,
}

/// One entry for each lease listed, in its order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LeaseRenewResponse {
    pub leases: Vec<RenewedLease>,
}
