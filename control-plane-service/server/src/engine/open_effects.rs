//! Effects that are not done, whole, so that performing them reads no row; and those done whose rows
//! still stand, so that they are not done again.
//!
//! Deleting the row of a done effect is folded into the operation's next turn, or done by a slow
//! sweep: losing it repeats idempotent work only.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use control_plane_ports::EffectId;
use kernel::id::{OperationId, OrganizationId};
use uuid::Uuid;

use crate::store::effect::OwnedEffect;

#[derive(Default)]
struct Memory {
    open: HashMap<Uuid, OwnedEffect>,
    /// Open effects of each operation; ids are time-ordered, so this is the order they were decided in.
    of: HashMap<OperationId, BTreeSet<Uuid>>,
    /// Done, row still there.
    done: HashMap<OperationId, (OrganizationId, HashSet<Uuid>)>,
}

impl Memory {
    fn close(&mut self, operation: OperationId, id: Uuid) {
        self.open.remove(&id);
        if let Some(effects) = self.of.get_mut(&operation) {
            effects.remove(&id);
            if effects.is_empty() {
                self.of.remove(&operation);
            }
        }
    }

    fn is_done(&self, operation: OperationId, id: Uuid) -> bool {
        self.done
            .get(&operation)
            .is_some_and(|(_, effects)| effects.contains(&id))
    }
}

/// The memory of effects.
#[derive(Default)]
pub struct OpenEffects(Mutex<Memory>);

impl OpenEffects {
    fn with<T>(&self, act: impl FnOnce(&mut Memory) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps an effect whose row is committed, unless it is done already.
    pub fn remember(&self, effect: OwnedEffect) {
        self.with(|memory| {
            let id = effect.effect.id.0;
            if !memory.is_done(effect.operation, id) {
                memory.of.entry(effect.operation).or_default().insert(id);
                memory.open.insert(id, effect);
            }
        });
    }

    /// An effect that is open as far as this process knows.
    pub fn find(&self, id: Uuid) -> Option<OwnedEffect> {
        self.with(|memory| memory.open.get(&id).cloned())
    }

    /// Whether the effect was done by this process and its row may still stand.
    pub fn is_done(&self, operation: OperationId, id: Uuid) -> bool {
        self.with(|memory| memory.is_done(operation, id))
    }

    /// The effect is done; its row is deleted later.
    pub fn done(&self, effect: &OwnedEffect) {
        self.with(|memory| {
            memory.close(effect.operation, effect.effect.id.0);
            memory
                .done
                .entry(effect.operation)
                .or_insert_with(|| (effect.organization, HashSet::new()))
                .1
                .insert(effect.effect.id.0);
        });
    }

    /// Done effects of an operation whose rows a turn may delete.
    pub fn done_of(&self, operation: OperationId) -> Vec<Uuid> {
        self.with(|memory| {
            let done = memory.done.get(&operation);
            done.map(|(_, effects)| effects.iter().copied().collect())
                .unwrap_or_default()
        })
    }

    /// Every operation with done effects whose rows still stand, by organization.
    pub fn all_done(&self) -> HashMap<OrganizationId, Vec<(OperationId, BTreeSet<Uuid>)>> {
        self.with(|memory| {
            let mut all: HashMap<OrganizationId, Vec<(OperationId, BTreeSet<Uuid>)>> = HashMap::new();
            for (operation, (organization, effects)) in &memory.done {
                let effects = effects.iter().copied().collect();
                all.entry(*organization).or_default().push((*operation, effects));
            }
            all
        })
    }

    /// The open effects of an operation, oldest first, as ids for a runtime.
    pub fn open_of(&self, operation: OperationId) -> Vec<EffectId> {
        self.with(|memory| {
            let open = memory.of.get(&operation);
            open.map(|effects| effects.iter().copied().map(EffectId).collect())
                .unwrap_or_default()
        })
    }

    /// The rows of these effects of an operation are gone.
    pub fn forget(&self, operation: OperationId, ids: &BTreeSet<Uuid>) {
        if ids.is_empty() {
            return;
        }
        self.with(|memory| {
            for id in ids {
                memory.close(operation, *id);
            }
            if let Some((_, effects)) = memory.done.get_mut(&operation) {
                effects.retain(|id| !ids.contains(id));
                if effects.is_empty() {
                    memory.done.remove(&operation);
                }
            }
        });
    }
}
