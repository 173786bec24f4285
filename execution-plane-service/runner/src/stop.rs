//! Why a job is to end before it does by itself. The first reason stands, but for one: a lease that
//! is gone silences every report.

use tokio::sync::watch;

/// Who or what wants the job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopCause {
    /// A person or another caller asked for it.
    Cancelled,
    /// The JobSpec's time is over.
    TimedOut,
    /// The lease could not be renewed; ended by our own clock before the deadline.
    LeaseLapsed,
    /// The service says that the attempt is not ours any more: end it, report nothing.
    LeaseGone,
    /// This runner shuts down.
    ShutDown,
}

/// A wish that every part of an attempt sees. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Stop(watch::Sender<Option<StopCause>>);

impl Stop {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    pub(crate) fn ask(&self, cause: StopCause) {
        self.0.send_if_modified(|current| {
            let counts = current.is_none() || (cause == StopCause::LeaseGone && *current != Some(cause));
            if counts {
                *current = Some(cause);
            }
            counts
        });
    }

    pub(crate) fn cause(&self) -> Option<StopCause> {
        *self.0.borrow()
    }

    /// Waits until someone asks.
    pub(crate) async fn asked(&self) -> StopCause {
        let mut receiver = self.0.subscribe();
        loop {
            if let Some(cause) = *receiver.borrow_and_update() {
                return cause;
            }
            if receiver.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_reason_stands_unless_the_lease_is_gone() {
        let stop = Stop::new();
        stop.ask(StopCause::Cancelled);
        stop.ask(StopCause::TimedOut);
        assert_eq!(stop.asked().await, StopCause::Cancelled);
        stop.ask(StopCause::LeaseGone);
        stop.ask(StopCause::ShutDown);
        assert_eq!(stop.cause(), Some(StopCause::LeaseGone));
    }
}
