//! Group commit: what comes in while a transaction runs goes together into the next one.
//!
//! Invariants: every item gets exactly one outcome; items of one organization keep their order in a
//! batch; organizations take turns, so that one with a long backlog delays another by one item at a
//! time. An item whose sender went away is still carried out: it may have been promised elsewhere.

use std::collections::VecDeque;
use std::sync::Arc;

use execution_plane_domain::routing::fair_order;
use kernel::id::OrganizationId;
use tokio::sync::{Mutex, mpsc, oneshot};

/// Most items of one transaction.
const MOST: usize = 64;
/// Most items that wait; beyond it senders wait.
const BACKLOG: usize = 4096;

type Entry<I, O> = (I, oneshot::Sender<O>);

/// Groups items into batches. Ends its tasks when dropped.
pub struct Batcher<I, O> {
    sender: mpsc::Sender<Entry<I, O>>,
}

struct Queue<I, O> {
    receiver: mpsc::Receiver<Entry<I, O>>,
    backlog: VecDeque<Entry<I, O>>,
}

impl<I, O> Batcher<I, O>
where
    I: Send + 'static,
    O: Send + 'static,
{
    /// Runs up to `lanes` batches at once through `run`, which answers one outcome an item, in order.
    pub fn start<F, R>(lanes: usize, party: fn(&I) -> OrganizationId, run: F) -> Self
    where
        F: Fn(Vec<I>) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Vec<O>> + Send + 'static,
    {
        let (sender, receiver) = mpsc::channel(BACKLOG);
        let queue = Arc::new(Mutex::new(Queue {
            receiver,
            backlog: VecDeque::new(),
        }));
        for _ in 0..lanes {
            let (queue, run) = (queue.clone(), run.clone());
            tokio::spawn(async move {
                loop {
                    let batch = queue.lock().await.next(party).await;
                    if batch.is_empty() {
                        return;
                    }
                    let (items, senders): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
                    // A task of its own: a panic costs its batch, never the lane.
                    let outcomes = tokio::spawn(run(items)).await.unwrap_or_default();
                    for (sender, outcome) in senders.into_iter().zip(outcomes) {
                        // Whoever asked may have gone; the outcome is in the database.
                        let _ = sender.send(outcome);
                    }
                }
            });
        }
        Self { sender }
    }

    /// Has `item` carried out with others; `None` when the batcher has ended or the batch panicked.
    pub async fn carry_out(&self, item: I) -> Option<O> {
        let (sender, outcome) = oneshot::channel();
        self.sender.send((item, sender)).await.ok()?;
        outcome.await.ok()
    }
}

impl<I, O> Queue<I, O> {
    /// The next batch; empty when nothing will ever come again.
    async fn next(&mut self, party: fn(&I) -> OrganizationId) -> Vec<Entry<I, O>> {
        if self.backlog.is_empty() {
            let Some(first) = self.receiver.recv().await else {
                return Vec::new();
            };
            self.backlog.push_back(first);
        }
        while self.backlog.len() < BACKLOG
            && let Ok(more) = self.receiver.try_recv()
        {
            self.backlog.push_back(more);
        }
        let parties = self.backlog.drain(..).map(|entry| (party(&entry.0), entry));
        let mut order: VecDeque<_> = fair_order(parties).into_iter().map(|(_, entry)| entry).collect();
        self.backlog = order.split_off(order.len().min(MOST));
        order.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_comes_in_meanwhile_goes_together_and_each_gets_its_own_outcome() {
        let (release, gate) = tokio::sync::watch::channel(false);
        let sizes = Arc::new(std::sync::Mutex::new(Vec::new()));
        let seen = sizes.clone();
        let batcher = Arc::new(Batcher::start(
            1,
            |_: &u32| OrganizationId(uuid::Uuid::nil()),
            move |items: Vec<u32>| {
                seen.lock().unwrap().push(items.len());
                let mut gate = gate.clone();
                async move {
                    gate.wait_for(|open| *open).await.unwrap();
                    items.into_iter().map(|item| item * 2).collect()
                }
            },
        ));
        let all: Vec<_> = (0..100)
            .map(|n| {
                let batcher = batcher.clone();
                tokio::spawn(async move { batcher.carry_out(n).await })
            })
            .collect();
        tokio::task::yield_now().await;
        release.send(true).unwrap();
        for (n, outcome) in all.into_iter().enumerate() {
            assert_eq!(outcome.await.unwrap(), Some(n as u32 * 2));
        }
        let sizes = sizes.lock().unwrap();
        assert_eq!(sizes.iter().sum::<usize>(), 100);
        assert!(sizes.iter().all(|size| *size <= MOST));
        assert!(sizes.len() < 100, "{sizes:?}");
    }
}
