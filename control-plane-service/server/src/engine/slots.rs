//! What this process remembers of operations between advances.
//!
//! Invariants: memory is only ever a copy of committed rows, valid while its revision is that of the
//! operation's row; a state that is taken out and not put back is loaded again; slots are locked in the
//! order of ids and before a database connection is taken, so neither can wait for the other.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use control_plane_operation::OperationState;
use kernel::id::OperationId;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::store::wakeup::Wanted;

/// One operation's memory.
#[derive(Default)]
pub struct Slot {
    pub state: Option<OperationState>,
    /// What the wake-up row says, as far as this process wrote it.
    pub wakeup: Option<Wanted>,
}

impl Slot {
    /// Takes the state out, if it is that of `revision`. Otherwise everything is forgotten.
    pub fn take(&mut self, revision: u64) -> Option<OperationState> {
        let state = self.state.take().filter(|state| state.operation().revision == revision);
        if state.is_none() {
            *self = Self::default();
        }
        state
    }
}

struct Entry {
    slot: Arc<AsyncMutex<Slot>>,
    used: u64,
}

#[derive(Default)]
struct Table {
    entries: HashMap<OperationId, Entry>,
    clock: u64,
}

/// The slots of all operations that this process met lately.
pub struct Slots {
    table: Mutex<Table>,
    capacity: usize,
}

/// Locked slots.
pub type Guards = BTreeMap<OperationId, OwnedMutexGuard<Slot>>;

impl Slots {
    /// Remembers about `capacity` operations.
    pub fn new(capacity: usize) -> Self {
        Self {
            table: Mutex::default(),
            capacity,
        }
    }

    /// Locks the slots of `ids`.
    pub async fn lock(&self, ids: &BTreeSet<OperationId>) -> Guards {
        let slots: Vec<(OperationId, Arc<AsyncMutex<Slot>>)> = {
            let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
            ids.iter().map(|id| (*id, table.slot(*id, self.capacity))).collect()
        };
        let mut guards = Guards::new();
        for (id, slot) in slots {
            guards.insert(id, slot.lock_owned().await);
        }
        guards
    }
}

impl Table {
    fn slot(&mut self, id: OperationId, capacity: usize) -> Arc<AsyncMutex<Slot>> {
        self.clock += 1;
        if self.entries.len() >= capacity && !self.entries.contains_key(&id) {
            self.evict(capacity);
        }
        let entry = self.entries.entry(id).or_insert_with(|| Entry {
            slot: Arc::default(),
            used: 0,
        });
        entry.used = self.clock;
        entry.slot.clone()
    }

    /// Forgets the quarter that was not used for longest, sparing what is in use.
    fn evict(&mut self, capacity: usize) {
        let mut used: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
        used.sort_unstable();
        let Some(limit) = used.get(capacity / 4).copied() else {
            return;
        };
        self.entries
            .retain(|_, entry| entry.used > limit || Arc::strong_count(&entry.slot) > 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn memory_is_bounded_and_spares_what_is_in_use() {
        let slots = Slots::new(8);
        let first = OperationId::new_v7();
        let held = slots.lock(&BTreeSet::from([first])).await;
        for _ in 0..100 {
            slots.lock(&BTreeSet::from([OperationId::new_v7()])).await;
        }
        let table = slots.table.lock().unwrap();
        assert!(table.entries.len() <= 9 && table.entries.contains_key(&first));
        drop(held);
    }
}
