//! Wake-ups by key, within the process. Losing one costs at most the next sweep.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api_kit::Closing;
use tokio::sync::watch;
use tokio::time::Instant;

/// Everyone who waits also looks by themselves so often.
pub const SWEEP: Duration = Duration::from_secs(1);

/// Who waits for what.
pub struct Signals<K> {
    senders: Mutex<HashMap<K, watch::Sender<()>>>,
}

impl<K> Default for Signals<K> {
    fn default() -> Self {
        Self {
            senders: Mutex::default(),
        }
    }
}

impl<K: Eq + Hash> Signals<K> {
    /// Subscribes; to be done before looking at what one waits for.
    pub fn subscribe(&self, key: K) -> watch::Receiver<()> {
        let mut senders = self.lock();
        senders.retain(|_, sender| sender.receiver_count() > 0);
        senders.entry(key).or_insert_with(|| watch::Sender::new(())).subscribe()
    }

    /// Wakes those who wait for `key`.
    pub fn notify(&self, key: &K) {
        if let Some(sender) = self.lock().get(key) {
            sender.send_replace(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, watch::Sender<()>>> {
        // Only wake-ups: a panicking thread leaves nothing half done.
        self.senders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for a wake-up or the next sweep. `false` when `deadline` has passed or the service closes:
/// look no further.
pub async fn woken(signal: &mut watch::Receiver<()>, deadline: Instant, closing: &Closing) -> bool {
    if Instant::now() >= deadline {
        return false;
    }
    let sweep = deadline.min(Instant::now() + SWEEP);
    tokio::select! {
        () = closing.closed() => false,
        // A sender that is gone says nothing any more: sweep on.
        changed = signal.changed() => {
            if changed.is_err() {
                tokio::time::sleep_until(sweep).await;
            }
            true
        }
        () = tokio::time::sleep_until(sweep) => true,
    }
}
