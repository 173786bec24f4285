//! Many callers, few transactions: what is told to operations while others are being asked is gathered
//! and goes into the next turn, several operations of an organization at a time.
//!
//! Invariants: one operation is in one turn at a time; an idle engine turns at once; a turn of many that
//! fails is tried again one by one, so that one bad operation spoils no other.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use kernel::id::{OperationId, OrganizationId};
use tokio::sync::oneshot;

use super::{Advance, Engine, EngineError, Telling};

/// Turns under way at the same time.
const TURNS: usize = 4;
/// Operations in one turn.
const TOGETHER: usize = 16;
/// How often a turn that met a deadlock is tried.
const TRIES: u32 = 5;

type Answer = Result<Advance, EngineError>;

struct Waiting {
    organization: OrganizationId,
    telling: Telling,
    answers: Vec<oneshot::Sender<Answer>>,
}

#[derive(Default)]
struct State {
    waiting: HashMap<OperationId, Waiting>,
    /// Operations that wait and are in no turn.
    ready: VecDeque<OperationId>,
    in_turn: HashSet<OperationId>,
    turns: usize,
}

type Batch = BTreeMap<OperationId, Waiting>;

/// The gathering place.
#[derive(Default)]
pub struct Crowd(Mutex<State>);

impl Crowd {
    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn add(&mut self, organization: OrganizationId, id: OperationId, telling: Telling) -> oneshot::Receiver<Answer> {
        let (answer, receiver) = oneshot::channel();
        let known = self.waiting.entry(id).or_insert_with(|| Waiting {
            organization,
            telling: Telling::default(),
            answers: Vec::new(),
        });
        let first = known.answers.is_empty();
        known.telling.inputs.extend(telling.inputs);
        known.telling.done.extend(telling.done);
        known.answers.push(answer);
        if first && !self.in_turn.contains(&id) {
            self.ready.push_back(id);
        }
        receiver
    }

    /// Takes the next operations of one organization.
    fn take(&mut self) -> Option<(OrganizationId, Batch)> {
        let first = *self.ready.front()?;
        let organization = self.waiting.get(&first)?.organization;
        let mut batch = Batch::new();
        let mut rest = VecDeque::new();
        while let Some(id) = self.ready.pop_front() {
            let ours = batch.len() < TOGETHER
                && self
                    .waiting
                    .get(&id)
                    .is_some_and(|waiting| waiting.organization == organization);
            match ours.then(|| self.waiting.remove(&id)).flatten() {
                Some(waiting) => {
                    self.in_turn.insert(id);
                    batch.insert(id, waiting);
                }
                None => rest.push_back(id),
            }
            if batch.len() >= TOGETHER {
                break;
            }
        }
        rest.append(&mut self.ready);
        self.ready = rest;
        Some((organization, batch))
    }

    fn release(&mut self, ids: impl Iterator<Item = OperationId>) {
        for id in ids {
            self.in_turn.remove(&id);
            if self.waiting.contains_key(&id) {
                self.ready.push_back(id);
            }
        }
    }
}

impl Engine {
    /// Tells an operation something, together with whoever else is telling anything just now.
    ///
    /// # Errors
    /// When nothing of it was written.
    pub(crate) async fn tell(
        self: &Arc<Self>,
        organization: OrganizationId,
        id: OperationId,
        telling: Telling,
    ) -> Result<Advance, EngineError> {
        let receiver = self.crowd.with(|state| state.add(organization, id, telling));
        self.start_turns();
        receiver.await.unwrap_or(Err(EngineError::Abandoned(id)))
    }

    /// Takes on one more turn taker when there is something to do and room for it.
    fn start_turns(self: &Arc<Self>) {
        let start = self.crowd.with(|state| {
            let start = state.turns < TURNS && !state.ready.is_empty();
            state.turns += usize::from(start);
            start
        });
        if start {
            tokio::spawn(self.clone().take_turns());
        }
    }

    async fn take_turns(self: Arc<Self>) {
        let _place = Place(self.clone());
        while let Some((organization, batch)) = self.crowd.with(State::take) {
            let _seats = Seats {
                engine: self.clone(),
                ids: batch.keys().copied().collect(),
            };
            self.take_turn(organization, batch).await;
        }
    }

    async fn take_turn(&self, organization: OrganizationId, batch: Batch) {
        let tellings = batch
            .iter()
            .map(|(id, waiting)| (*id, waiting.telling.clone()))
            .collect();
        match self.persist(organization, tellings).await {
            Ok(advances) => answer(batch, advances),
            Err(error) if batch.len() == 1 => refuse(batch, error),
            Err(error) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "a common turn failed, one by one now"
                );
                for (id, waiting) in batch {
                    let single = BTreeMap::from([(id, waiting.telling.clone())]);
                    match self.persist(organization, single).await {
                        Ok(advances) => answer(BTreeMap::from([(id, waiting)]), advances),
                        Err(error) => refuse(BTreeMap::from([(id, waiting)]), error),
                    }
                }
            }
        }
    }

    async fn persist(
        &self,
        organization: OrganizationId,
        tellings: BTreeMap<OperationId, Telling>,
    ) -> Result<Vec<Advance>, EngineError> {
        let mut tries = 1;
        loop {
            match self.advance_all(organization, tellings.clone()).await {
                Err(error) if error.is_worth_repeating() && tries < TRIES => tries += 1,
                outcome => return outcome,
            }
        }
    }
}

/// A turn taker's place, given back also when deciding panics: the others go on.
struct Place(Arc<Engine>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.crowd.with(|state| state.turns -= 1);
        self.0.start_turns();
    }
}

/// Operations in a turn, let go of in the same way.
struct Seats {
    engine: Arc<Engine>,
    ids: Vec<OperationId>,
}

impl Drop for Seats {
    fn drop(&mut self) {
        let ids = std::mem::take(&mut self.ids);
        self.engine.crowd.with(|state| state.release(ids.into_iter()));
    }
}

fn answer(batch: Batch, advances: Vec<Advance>) {
    let advances: HashMap<OperationId, Advance> = advances
        .into_iter()
        .map(|advance| (advance.operation, advance))
        .collect();
    for (id, waiting) in batch {
        for sender in waiting.answers {
            // Who no longer waits needs no answer.
            let _ = sender.send(advances.get(&id).cloned().ok_or(EngineError::NotFound(id)));
        }
    }
}

fn refuse(batch: Batch, error: EngineError) {
    let error = Arc::new(error);
    for (_, waiting) in batch {
        for sender in waiting.answers {
            let _ = sender.send(Err(EngineError::Shared(error.clone())));
        }
    }
}
