use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use api_kit::{Act, Caller, Problem};
use contracts::ResourceUpdateCommand;
use kernel::id::OrganizationId;
use kernel::{Sha256Digest, canonical_digest};
use tokio::sync::{Semaphore, oneshot};

use super::batch::{self, Answer};
use crate::catalog::Catalog;

/// Most commands in one transaction.
const MAX_BATCH: usize = 64;
/// Transactions under way at once; more would only wait for the same log.
const BATCHES: usize = 4;

/// Most commands that wait; past it, new ones are turned away.
const MAX_WAITING: usize = 10_000;

/// A command that waits for its transaction.
#[derive(Debug)]
pub(super) struct Waiting {
    pub organization: OrganizationId,
    pub actor: String,
    pub act: Act,
    pub command: ResourceUpdateCommand,
    pub digest: Sha256Digest,
    reply: oneshot::Sender<Result<Answer, Problem>>,
}

/// The queue of waiting commands.
#[derive(Debug, Clone)]
pub struct Updates(Arc<Queue>);

#[derive(Debug)]
struct Queue {
    waiting: Mutex<VecDeque<Waiting>>,
    slots: Arc<Semaphore>,
}

impl Default for Updates {
    fn default() -> Self {
        Self(Arc::new(Queue {
            waiting: Mutex::default(),
            slots: Arc::new(Semaphore::new(BATCHES)),
        }))
    }
}

impl Updates {
    /// Decides `command`, together with whatever else waits.
    ///
    /// # Errors
    /// The store failed; then the command may be sent again.
    pub async fn decide(
        &self,
        catalog: &Catalog,
        caller: Caller,
        command: ResourceUpdateCommand,
    ) -> Result<Answer, Problem> {
        let digest = canonical_digest(&command).map_err(|error| {
            let fault = api_kit::FieldError::new("", "no_canonical_form", error.to_string());
            Problem::invalid([fault])
        })?;
        let (reply, answer) = oneshot::channel();
        let waiting = Waiting {
            organization: caller.organization,
            actor: caller.subject,
            act: caller.act,
            command,
            digest,
            reply,
        };
        self.push(waiting)?;
        self.start(catalog);
        answer.await.unwrap_or_else(|_| Err(Problem::internal()))
    }

    /// How many commands wait.
    pub fn waiting(&self) -> usize {
        self.locked().len()
    }

    fn push(&self, waiting: Waiting) -> Result<(), Problem> {
        let mut queue = self.locked();
        if queue.len() >= MAX_WAITING {
            return Err(Problem::unavailable("Too many resource updates wait already."));
        }
        queue.push_back(waiting);
        Ok(())
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, VecDeque<Waiting>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a task that works the queue off, unless enough of them do.
    fn start(&self, catalog: &Catalog) {
        let Ok(slot) = Arc::clone(&self.0.slots).try_acquire_owned() else {
            return;
        };
        let (updates, catalog) = (self.clone(), catalog.clone());
        tokio::spawn(async move {
            while let Some(batch) = updates.take() {
                let catalog = catalog.clone();
                // A task of its own: should it panic, its commands are told so, and the queue goes on.
                let deciding = tokio::spawn(async move {
                    let answers = batch::decide(&catalog, &batch).await;
                    for (waiting, answer) in batch.into_iter().zip(answers) {
                        // A client that has gone asks again under the same id.
                        let _ = waiting.reply.send(answer);
                    }
                });
                if let Err(error) = deciding.await {
                    tracing::error!(%error, "a batch of resource updates ended early");
                }
            }
            drop(slot);
            // What came between the last look and the release found no free slot.
            if !updates.locked().is_empty() {
                updates.start(&catalog);
            }
        });
    }

    /// The next commands of one organization, in the order they came.
    fn take(&self) -> Option<Vec<Waiting>> {
        let mut waiting = self.locked();
        let organization = waiting.front()?.organization;
        let mut batch = Vec::new();
        let mut others = Vec::new();
        while batch.len() < MAX_BATCH
            && let Some(next) = waiting.pop_front()
        {
            if next.organization == organization {
                batch.push(next);
            } else {
                others.push(next);
            }
        }
        // Passed over, not overtaken: they are first in the next batch.
        for other in others.into_iter().rev() {
            waiting.push_front(other);
        }
        Some(batch)
    }
}
