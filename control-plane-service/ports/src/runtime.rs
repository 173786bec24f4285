//! The port to the durable runtime: whatever makes sure that an operation is asked again.
//!
//! The domain decides and the store remembers; a runtime only calls [`OperationDriver::advance`] after
//! an effect finished, a signal came or a time was reached, and [`OperationDriver::perform`] for the
//! effects that an advance left. Invariants:
//! - A runtime holds no fact. Everything it knows can be read again from [`Wakeups`], so losing all of
//!   its own data loses nothing, and switching runtimes with operations open needs nothing new.
//! - It retries transport only. A new attempt of a job is the domain's choice alone.
//! - Effects may be performed twice: each is idempotent by its id.
//! - It works by ids; no plan, parameter or result passes through it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::id::OperationId;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

kernel::typed_id!(
    /// One effect row of control-plane: the idempotency key of whatever carries it out.
    EffectId
);

/// What one advance left to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advanced {
    /// Every effect of the operation that is not known to be done, oldest first.
    pub effects: Vec<EffectId>,
    /// When the operation wants to be asked again even if nothing happens.
    pub next_wakeup: Option<DateTime<Utc>>,
}

/// Why a driver could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The other side of an effect did not answer. The runtime tries again, for ever.
    #[error("{dependency} cannot be reached")]
    Unreachable {
        dependency: &'static str,
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database did not answer. The runtime tries again, for ever.
    #[error("the store cannot be reached")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// control-plane's side: asks the domain and carries out effects.
#[async_trait]
pub trait OperationDriver: Send + Sync + 'static {
    /// One transaction: fence, drain the inbox, decide, write. Asking an operation that has nothing
    /// to do changes nothing.
    ///
    /// # Errors
    /// When the store does not answer; nothing was changed then.
    async fn advance(&self, operation: OperationId) -> Result<Advanced, DriverError>;

    /// Carries out one effect and records its report; says what the report led to. An effect that is
    /// unknown or done already is answered by an empty outcome.
    ///
    /// # Errors
    /// When the other side or the store does not answer; the same call is made again later.
    async fn perform(&self, effect: EffectId) -> Result<Advanced, DriverError>;
}

/// The permanent wake-up rows, owned by control-plane's store in every runtime.
#[async_trait]
pub trait Wakeups: Send + Sync + 'static {
    /// Takes operations that must be asked now: their time has come, their inbox is not empty, or an
    /// effect of theirs is overdue. Attempts are counted as they are taken, and what was taken is not
    /// offered again until its lease ends.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn claim_due(&self, limit: usize) -> Result<Vec<OperationId>, DriverError>;
}

/// What a runtime says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuntimeStatus {
    /// `embedded` or `temporal`.
    pub kind: String,
    /// Whether it is being run at the moment.
    pub running: bool,
    /// Operations being asked, or known to need it.
    pub operations: u64,
    /// Effects being performed.
    pub effects_in_flight: u64,
    /// Effects waiting to be tried again because the other side did not answer.
    pub effects_waiting: u64,
    /// When the wake-up rows were last read.
    pub swept_at: Option<DateTime<Utc>>,
}

/// A durable runtime.
#[async_trait]
pub trait DurableRuntime: Send + Sync + 'static {
    /// Something happened to the operation: it must be asked. Never blocks, never fails; many notices
    /// for one operation may become one. A notice that is lost costs time only, for the wake-up rows stay.
    fn notify(&self, operation: OperationId);

    /// This process has advanced the operation by itself (a command, a batch of results): the runtime
    /// takes over from what that left.
    fn took(&self, operation: OperationId, advanced: Advanced) {
        if !advanced.effects.is_empty() || advanced.next_wakeup.is_some() {
            self.notify(operation);
        }
    }

    /// Drives operations until `shutdown`; what is in flight then is finished or left to its rows.
    async fn run(&self, driver: Arc<dyn OperationDriver>, wakeups: Arc<dyn Wakeups>, shutdown: CancellationToken);

    /// What it is doing.
    fn status(&self) -> RuntimeStatus;
}

/// The pause before try number `tries` + 1 of something whose other side does not answer: 100 ms,
/// doubled each time, at most 15 s, less up to a quarter by `jitter` (0..=255) so that a crowd does
/// not come back as one.
#[must_use]
pub fn backoff(tries: u32, jitter: u8) -> Duration {
    let whole = Duration::from_millis(100)
        .saturating_mul(1 << tries.min(10))
        .min(Duration::from_secs(15));
    whole - whole / 4 * u32::from(jitter) / 255
}
