//! What every service keeps: a feed, an audit.

use database::Database;

use super::{Figure, Metrics};

struct Figures {
    head: Figure,
    waiting: Figure,
    oldest_waiting: Figure,
    parked: Figure,
    consumers: Figure,
    most_behind: Figure,
    most_silent: Figure,
    unchained: Figure,
    oldest_unchained: Figure,
}

impl Figures {
    fn registered(metrics: &Metrics) -> Self {
        Self {
            head: metrics.figure("feed_head", "The last revision that the feed gave"),
            waiting: metrics.figure("feed_waiting", "Events that are committed and have no revision yet"),
            oldest_waiting: metrics.figure("feed_oldest_waiting_seconds", "How long the oldest of them waits"),
            parked: metrics.figure(
                "feed_parked",
                "Events that the feed refused; a person has to look at them",
            ),
            consumers: metrics.figure("feed_consumers", "Consumers that the feed knows"),
            most_behind: metrics.figure(
                "feed_consumer_behind",
                "Revisions that the slowest consumer has not acknowledged",
            ),
            most_silent: metrics.figure(
                "feed_consumer_silent_seconds",
                "Time since the most silent consumer acknowledged anything",
            ),
            unchained: metrics.figure("audit_unchained", "Audit facts that wait for their place in the chain"),
            oldest_unchained: metrics.figure("audit_oldest_unchained_seconds", "How long the oldest of them waits"),
        }
    }

    fn set(&self, feed: &outbox::Figures, (unchained, oldest_unchained): (i64, f64)) {
        // Far below where a float is no longer exact.
        self.head.set(feed.head as f64);
        self.waiting.set(feed.waiting as f64);
        self.oldest_waiting.set(feed.oldest_waiting_seconds);
        self.parked.set(feed.parked as f64);
        self.consumers.set(feed.consumers as f64);
        self.most_behind.set(feed.most_behind as f64);
        self.most_silent.set(feed.most_silent_seconds);
        self.unchained.set(unchained as f64);
        self.oldest_unchained.set(oldest_unchained);
    }
}

impl Metrics {
    /// Tells how feed and audit stand in the database of `worker`, over all organizations.
    pub fn records(&self, worker: &Database) {
        let figures = std::sync::Arc::new(Figures::registered(self));
        let worker = worker.clone();
        self.look(move || {
            let (figures, worker) = (figures.clone(), worker.clone());
            async move {
                let feed = outbox::figures(&worker).await?;
                figures.set(&feed, ::audit::waiting(&worker).await?);
                Ok(())
            }
        });
    }
}
