//! Waking within a process: writers wake the sequencer, the sequencer wakes readers.

use std::sync::Arc;

use tokio::sync::{Notify, watch};

/// Shared by the writers, the sequencer and the readers of one database in one process. Cheap to
/// clone. Losing a signal loses nothing: everyone also looks once a second.
#[derive(Debug, Clone)]
pub struct Signal {
    written: Arc<Notify>,
    head: watch::Sender<i64>,
}

impl Default for Signal {
    fn default() -> Self {
        Self {
            written: Arc::default(),
            head: watch::Sender::new(0),
        }
    }
}

impl Signal {
    /// Says that events were committed to the outbox. Coalesces; never blocks.
    pub fn wake(&self) {
        self.written.notify_one();
    }

    pub(crate) async fn written(&self) {
        self.written.notified().await;
    }

    /// Says that the feed ends at `head` now.
    pub(crate) fn advance(&self, head: i64) {
        self.head.send_if_modified(|known| {
            let moved = *known < head;
            *known = head.max(*known);
            moved
        });
    }

    /// The last head that this process knows of; a lower bound of the real one.
    #[must_use]
    pub fn head(&self) -> i64 {
        *self.head.borrow()
    }

    /// Sees the head move.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<i64> {
        self.head.subscribe()
    }
}
