//! What turns of this process committed, for those who watch operations: whole, so that following a
//! live operation reads no row. Losing news loses nothing: who misses some reads the rows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use control_plane_operation::Event;
use kernel::id::OperationId;
use tokio::sync::broadcast;

/// Who lags further behind than this reads the rows.
const KEPT: usize = 64;

/// What one turn committed to one operation.
#[derive(Debug, Clone)]
pub struct News {
    /// In the order of their sequences; may be none.
    pub events: Arc<[Event]>,
    /// The operation's run is over.
    pub is_over: bool,
}

impl News {
    /// The events after the one of sequence `after`. `None`: some between are not in it.
    pub fn after(&self, after: i64) -> Option<impl Iterator<Item = &Event>> {
        let known = u64::try_from(after).unwrap_or_default();
        let is_whole = self.events.first().is_none_or(|first| first.sequence <= known + 1);
        is_whole.then(|| self.events.iter().filter(move |event| event.sequence > known))
    }

    /// Whether the run is over and its last event is the one of sequence `after`.
    pub fn ends_at(&self, after: i64) -> bool {
        let last = self.events.last().and_then(|last| i64::try_from(last.sequence).ok());
        self.is_over && last == Some(after)
    }
}

/// Where news is told.
#[derive(Default)]
pub struct Newsroom(Mutex<HashMap<OperationId, broadcast::Sender<News>>>);

impl Newsroom {
    /// All that is committed to the operation from now on.
    pub fn follow(&self, operation: OperationId) -> broadcast::Receiver<News> {
        let mut senders = self.senders();
        senders.retain(|_, sender| sender.receiver_count() > 0);
        let sender = senders.entry(operation).or_insert_with(|| broadcast::Sender::new(KEPT));
        sender.subscribe()
    }

    /// Whether anyone listens.
    pub fn is_followed(&self, operation: OperationId) -> bool {
        self.senders().contains_key(&operation)
    }

    /// Tells those who listen; nobody listening is no fault.
    pub fn tell(&self, operation: OperationId, news: News) {
        let mut senders = self.senders();
        if senders.get(&operation).is_some_and(|sender| sender.send(news).is_err()) {
            senders.remove(&operation);
        }
    }

    fn senders(&self) -> MutexGuard<'_, HashMap<OperationId, broadcast::Sender<News>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::Utc;
    use control_plane_operation::{Actor, Cause, EventKind};

    fn news(sequences: std::ops::RangeInclusive<u64>, is_over: bool) -> News {
        let event = |sequence| Event {
            sequence,
            at: Utc::now(),
            actor: Actor::ControlPlane,
            cause: Cause::Timer,
            kind: EventKind::ClaimsWanted,
        };
        News {
            events: sequences.map(event).collect(),
            is_over,
        }
    }

    #[test]
    fn news_goes_on_where_the_watcher_is_and_says_when_something_is_missing() {
        let three = news(5..=7, true);
        let seen = |after| {
            three
                .after(after)
                .map(|events| events.map(|event| event.sequence).collect::<Vec<_>>())
        };
        assert_eq!(seen(4), Some(vec![5, 6, 7]));
        assert_eq!(seen(6), Some(vec![7]));
        assert_eq!(seen(9), Some(vec![]));
        assert_eq!(seen(3), None);
        assert!(three.ends_at(7) && !three.ends_at(9) && !news(5..=7, false).ends_at(7));
    }

    #[test]
    fn only_who_follows_an_operation_is_told_and_nothing_is_kept_for_who_has_left() {
        let room = Newsroom::default();
        let (ours, other) = (OperationId::new_v7(), OperationId::new_v7());
        let mut following = room.follow(ours);
        room.tell(other, news(1..=1, false));
        room.tell(ours, news(1..=2, false));
        assert_eq!(following.try_recv().unwrap().events.len(), 2);
        assert!(following.try_recv().is_err());
        drop(following);
        room.tell(ours, news(3..=3, false));
        assert!(!room.is_followed(ours));
    }
}
