//! The attempts that this runner has, and their leases by its own clock.
//!
//! The clock is monotonic and counted from the moment a request was *sent*, so it runs out before the
//! service's does, whatever the network or the wall clock do.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use execution_plane_api::HeldAttempt;
use kernel::id::AttemptId;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::jobs::context::Begun;
use crate::stop::{Stop, StopCause};

/// One attempt in hand.
pub(crate) struct Active {
    pub(crate) id: AttemptId,
    pub(crate) epoch: u64,
    pub(crate) stop: Stop,
    pub(crate) begun: Begun,
    cancelling: AtomicBool,
    renewed: AtomicBool,
    gone: AtomicBool,
    /// None until the first renewal of an attempt found after a restart.
    deadline: Mutex<Option<Instant>>,
}

impl Active {
    pub(crate) fn new(id: AttemptId, epoch: u64, deadline: Option<Instant>) -> Self {
        Self {
            id,
            epoch,
            stop: Stop::new(),
            begun: Begun::default(),
            cancelling: AtomicBool::new(false),
            renewed: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            deadline: Mutex::new(deadline),
        }
    }

    /// The lease holds until `deadline`.
    pub(crate) fn renewed(&self, deadline: Instant) {
        self.renewed.store(true, Ordering::SeqCst);
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = Some(deadline);
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn cancel(&self) {
        self.cancelling.store(true, Ordering::SeqCst);
        self.stop.ask(StopCause::Cancelled);
    }

    /// The answer to a pull said that the attempt is over, or another's.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }

    pub(crate) fn gone(&self) {
        self.gone.store(true, Ordering::SeqCst);
        self.stop.ask(StopCause::LeaseGone);
    }

    fn held(&self) -> HeldAttempt {
        HeldAttempt {
            attempt_id: self.id,
            epoch: self.epoch,
            cancelling: self.cancelling.load(Ordering::SeqCst),
        }
    }
}

/// All attempts in hand: from the lease to the accepted end.
#[derive(Default)]
pub(crate) struct Registry {
    attempts: Mutex<HashMap<AttemptId, Arc<Active>>>,
    changed: Notify,
}

impl Registry {
    /// Takes an attempt in hand; false when it already is.
    pub(crate) fn add(&self, active: &Arc<Active>) -> bool {
        let fresh = match self.all().entry(active.id) {
            std::collections::hash_map::Entry::Occupied(_) => false,
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(Arc::clone(active));
                true
            }
        };
        self.changed.notify_waiters();
        fresh
    }

    pub(crate) fn remove(&self, id: AttemptId) {
        self.all().remove(&id);
        self.changed.notify_waiters();
    }

    pub(crate) fn get(&self, id: AttemptId) -> Option<Arc<Active>> {
        self.all().get(&id).cloned()
    }

    pub(crate) fn list(&self) -> Vec<Arc<Active>> {
        self.all().values().cloned().collect()
    }

    pub(crate) fn held(&self) -> Vec<HeldAttempt> {
        self.all().values().map(|active| active.held()).collect()
    }

    /// Every lease in hand has been renewed at least once.
    pub(crate) fn all_renewed(&self) -> bool {
        self.all().values().all(|active| active.renewed.load(Ordering::SeqCst))
    }

    pub(crate) fn count(&self) -> usize {
        self.all().len()
    }

    /// Waits until `holds` of the number of attempts.
    pub(crate) async fn until(&self, holds: impl Fn(usize) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if holds(self.count()) {
                return;
            }
            changed.await;
        }
    }

    pub(crate) fn stop_all(&self, cause: StopCause) {
        for active in self.list() {
            active.stop.ask(cause);
        }
    }

    /// Ends every attempt whose lease has less than `margin` left; how long until the next may.
    pub(crate) fn end_lapsed(&self, now: Instant, margin: Duration) -> Duration {
        let mut next = Duration::from_secs(1);
        for active in self.list() {
            let Some(deadline) = active.deadline() else { continue };
            let left = deadline.saturating_duration_since(now).saturating_sub(margin);
            if left.is_zero() {
                active.stop.ask(StopCause::LeaseLapsed);
            } else {
                next = next.min(left);
            }
        }
        next
    }

    fn all(&self) -> MutexGuard<'_, HashMap<AttemptId, Arc<Active>>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
