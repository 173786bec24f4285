//! Runners that wait for work in this process, so that a submission is leased to one of them in its
//! own transaction.
//!
//! Invariants: a waiting runner is reserved for one batch at a time; what it is handed was committed
//! before; a reservation that came to nothing sends its runner back to look for itself, so no queued
//! attempt is overlooked; a runner that stopped waiting is never chosen (and if it stops in the very
//! moment, it gets its lease with its next pull).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use execution_plane_domain::routing::{Demand, Offer};
use kernel::id::OrganizationId;
use tokio::sync::oneshot;

use crate::store::granted::{Granted, Grantee};

/// What a waiting runner is told.
#[derive(Debug)]
pub enum Handed {
    Leases(Vec<Granted>),
    /// Something changed: look at the store again.
    LookAgain,
    /// A newer pull of the same runner waits in its place.
    GaveWay,
}

struct Waiter {
    ticket: u64,
    grantee: Grantee,
    offer: Arc<Offer>,
    free: u32,
    sender: oneshot::Sender<Handed>,
}

#[derive(Default)]
struct Party {
    /// Grows with every attempt that is queued.
    queued: u64,
    waiting: Vec<Waiter>,
}

#[derive(Default)]
struct Inner {
    next_ticket: u64,
    parties: HashMap<OrganizationId, Party>,
}

/// All who wait.
#[derive(Default)]
pub struct Waiters {
    inner: Mutex<Inner>,
}

/// A runner's place among those who wait; given up when dropped.
pub struct Waiting<'a> {
    waiters: &'a Waiters,
    organization: OrganizationId,
    ticket: u64,
    /// What it is told.
    pub told: oneshot::Receiver<Handed>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut inner = self.waiters.lock();
        if let Some(party) = inner.parties.get_mut(&self.organization) {
            party.waiting.retain(|waiter| waiter.ticket != self.ticket);
        }
    }
}

impl Waiters {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change below is complete in itself.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many attempts were ever queued here; to be read before looking at the store.
    pub fn queued_so_far(&self, organization: OrganizationId) -> u64 {
        self.lock().parties.get(&organization).map_or(0, |party| party.queued)
    }

    /// Begins to wait, unless something was queued since `seen` was read: then look again.
    pub fn wait(
        &self,
        organization: OrganizationId,
        grantee: Grantee,
        offer: Arc<Offer>,
        free: u32,
        seen: u64,
    ) -> Option<Waiting<'_>> {
        let mut inner = self.lock();
        inner.next_ticket += 1;
        let ticket = inner.next_ticket;
        let party = inner.parties.entry(organization).or_default();
        if party.queued != seen {
            return None;
        }
        // One outstanding pull a runner: an older one is an abandoned call.
        party.waiting.retain(|waiter| waiter.grantee.runner != grantee.runner);
        let (sender, told) = oneshot::channel();
        party.waiting.push(Waiter {
            ticket,
            grantee,
            offer,
            free,
            sender,
        });
        Some(Waiting {
            waiters: self,
            organization,
            ticket,
            told,
        })
    }

    /// An attempt was queued: whoever may have it looks again.
    pub fn queued(&self, organization: OrganizationId, demand: &Demand) {
        let mut inner = self.lock();
        let party = inner.parties.entry(organization).or_default();
        party.queued += 1;
        let fits = |waiter: &Waiter| waiter.free > 0 && waiter.offer.admits(demand).is_ok();
        if let Some(place) = party.waiting.iter().position(fits) {
            let waiter = party.waiting.remove(place);
            let _ = waiter.sender.send(Handed::LookAgain);
        }
    }

    /// Something about a runner changed (a newer session, drain): it looks again if it waits.
    pub fn changed(&self, organization: OrganizationId, grantee: kernel::id::RunnerId) {
        let mut inner = self.lock();
        let Some(party) = inner.parties.get_mut(&organization) else {
            return;
        };
        while let Some(place) = party.waiting.iter().position(|waiter| waiter.grantee.runner == grantee) {
            let waiter = party.waiting.remove(place);
            let _ = waiter.sender.send(Handed::LookAgain);
        }
    }

    /// Begins to reserve runners for one batch.
    pub const fn reservations(&self) -> Reservations<'_> {
        Reservations {
            waiters: self,
            taken: Vec::new(),
        }
    }
}

/// Runners that are reserved for a batch. Dropped or settled, those that got nothing look again.
pub struct Reservations<'a> {
    waiters: &'a Waiters,
    taken: Vec<Taken>,
}

struct Taken {
    organization: OrganizationId,
    waiter: Waiter,
    left: u32,
    leases: Vec<Granted>,
}

impl Reservations<'_> {
    /// Reserves a place with the runner that has most of them free, the longest waiting first.
    /// Answers which (for [`Reservations::give`]) and whose it is.
    pub fn place(&mut self, organization: OrganizationId, demand: &Demand) -> Option<(usize, Grantee)> {
        let taken = self
            .taken
            .iter()
            .enumerate()
            .filter(|(_, taken)| taken.organization == organization && taken.left > 0)
            .filter(|(_, taken)| taken.waiter.offer.admits(demand).is_ok())
            .max_by_key(|(index, taken)| (taken.left, usize::MAX - index))
            .map(|(index, taken)| (index, taken.left));
        let fresh = self.take_fresh(organization, demand, taken.map_or(0, |(_, left)| left));
        let index = fresh.or(taken.map(|(index, _)| index))?;
        let chosen = &mut self.taken[index];
        chosen.left -= 1;
        Some((index, chosen.waiter.grantee))
    }

    /// Takes a waiting runner with more than `at_least` free places out of the crowd.
    fn take_fresh(&mut self, organization: OrganizationId, demand: &Demand, at_least: u32) -> Option<usize> {
        let mut inner = self.waiters.lock();
        let party = inner.parties.get_mut(&organization)?;
        let (place, _) = party
            .waiting
            .iter()
            .enumerate()
            .filter(|(_, waiter)| waiter.free > at_least && !waiter.sender.is_closed())
            .filter(|(_, waiter)| waiter.offer.admits(demand).is_ok())
            .max_by_key(|(index, waiter)| (waiter.free, usize::MAX - index))?;
        let waiter = party.waiting.remove(place);
        self.taken.push(Taken {
            organization,
            left: waiter.free,
            waiter,
            leases: Vec::new(),
        });
        Some(self.taken.len() - 1)
    }

    /// A lease for a reserved runner, committed.
    pub fn give(&mut self, index: usize, granted: Granted) {
        self.taken[index].leases.push(granted);
    }
}

impl Drop for Reservations<'_> {
    fn drop(&mut self) {
        for taken in self.taken.drain(..) {
            let handed = if taken.leases.is_empty() {
                Handed::LookAgain
            } else {
                Handed::Leases(taken.leases)
            };
            // Gone meanwhile: its next pull delivers them again.
            let _ = taken.waiter.sender.send(handed);
        }
    }
}
