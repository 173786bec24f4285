//! Whether an attempt is still this runner's, from the only answer that settles it.
//!
//! The service fences off what an earlier session leased until a pull of the present session has
//! listed it, and says so in the same words as of an attempt that is over. So a refusal settles
//! nothing; the answer to a pull that was sent after the refusal does: what it does not call gone is
//! this session's from then on. Nobody but the pull loop sends pulls, because there is one at a time.

use tokio::sync::{Notify, watch};

/// What is known of an attempt after a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The service knows it as this session's: the refused call may be made again.
    Ours,
    /// The service knows it as over, or as another's.
    Gone,
    /// There is no pull any more that could tell; a later start of the runner finds out.
    Unsettled,
}

#[derive(Debug, Default, Clone, Copy)]
struct Progress {
    sent: u64,
    answered: u64,
    ended: bool,
}

/// The pulls of this process, seen by those who wait for one to be answered.
#[derive(Debug, Default)]
pub(crate) struct Pulls {
    wanted: Notify,
    progress: watch::Sender<Progress>,
}

impl Pulls {
    /// A pull is about to be sent, listing what is in hand; its number.
    pub(crate) fn sent(&self) -> u64 {
        self.progress.send_modify(|progress| progress.sent += 1);
        self.progress.borrow().sent
    }

    /// Its answer is applied to what is in hand.
    pub(crate) fn answered(&self, number: u64) {
        self.progress.send_modify(|progress| progress.answered = number);
    }

    /// No further pull will be sent.
    pub(crate) fn end(&self) {
        self.progress.send_modify(|progress| progress.ended = true);
    }

    /// Waits until somebody wants an answer sooner than the pull under way gives it.
    pub(crate) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// Waits for the answer to a pull that is sent from now on; false when there will be none.
    pub(crate) async fn next_answer(&self) -> bool {
        let mut progress = self.progress.subscribe();
        let number = progress.borrow().sent + 1;
        self.wanted.notify_one();
        self.reached(&mut progress, number).await
    }

    /// Waits until this session holds what an earlier one left; false when it never will.
    pub(crate) async fn first_answer(&self) -> bool {
        self.reached(&mut self.progress.subscribe(), 1).await
    }

    async fn reached(&self, progress: &mut watch::Receiver<Progress>, number: u64) -> bool {
        let reached = progress.wait_for(|now| now.ended || now.answered >= number).await;
        reached.is_ok_and(|now| now.answered >= number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_answer_to_a_pull_sent_afterwards_settles_a_doubt() {
        let pulls = Pulls::default();
        let under_way = pulls.sent();
        let mut doubt = polled(pulls.next_answer());
        assert!(doubt.pending().await);
        pulls.answered(under_way);
        assert!(doubt.pending().await, "it was sent before the refusal");
        pulls.answered(pulls.sent());
        assert!(doubt.future.await);
    }

    #[tokio::test]
    async fn a_doubt_stays_one_when_no_pull_comes_any_more() {
        let pulls = Pulls::default();
        pulls.answered(pulls.sent());
        let mut doubt = polled(pulls.next_answer());
        assert!(doubt.pending().await);
        pulls.end();
        assert!(!doubt.future.await);
        assert!(pulls.first_answer().await);
    }

    struct Polled<F: Future<Output = bool>> {
        future: std::pin::Pin<Box<F>>,
    }

    fn polled<F: Future<Output = bool>>(future: F) -> Polled<F> {
        Polled {
            future: Box::pin(future),
        }
    }

    impl<F: Future<Output = bool>> Polled<F> {
        async fn pending(&mut self) -> bool {
            futures::poll!(&mut self.future).is_pending()
        }
    }
}
