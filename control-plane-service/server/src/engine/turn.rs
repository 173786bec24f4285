//! One turn: one transaction in which one or more operations of an organization are asked.
//!
//! Invariants: fence, drain, decide, claims, write, commit, in this order; nothing is done in the world
//! before the commit; a turn that does not commit leaves the rows as they were and this process without
//! a memory of the operations, so the next turn loads them.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use control_plane_operation::{Change, CommandOutcome, Decision, Effect, Input, OperationState, decide};
use database::{Database, DatabaseError, OrgTransaction};
use kernel::Sha256Digest;
use kernel::id::{OperationId, OrganizationId, PlanId};
use uuid::Uuid;

use super::facts;
use super::ids::FreshIds;
use super::slots::{Guards, Slot};
use super::{Advance, Engine, EngineError, News, Telling};
use crate::points;
use crate::store::effect::OwnedEffect;
use crate::store::inbox::Told;
use crate::store::wakeup::Wanted;
use crate::store::writes::Writes;
use crate::store::{inbox, load, operation, plan_revision};

/// An operation in a turn.
pub(super) struct Seat {
    pub(super) state: OperationState,
    now: DateTime<Utc>,
    new_effects: Vec<Effect>,
}

/// A turn under way.
pub struct Turn<'e> {
    pub(super) engine: &'e Engine,
    pub(super) organization: OrganizationId,
    pub(super) tx: OrgTransaction,
    slots: Guards,
    pub(super) seats: BTreeMap<OperationId, Seat>,
    pub(super) writes: Writes,
    pub(super) claim_work: Vec<(OperationId, Change)>,
    /// Operations here whose claims may be free by now.
    pub(super) rechecks: BTreeSet<OperationId>,
    /// Operations elsewhere that were told something.
    pub(super) woken: BTreeSet<OperationId>,
    /// The ids of plans that become an operation's next revision.
    pub revision_ids: BTreeMap<OperationId, PlanId>,
    revised: Vec<(OperationId, u32)>,
    written: bool,
}

impl<'e> Turn<'e> {
    /// Begins a turn for operations of `organization` as the role of `database`: slots first, then the
    /// connection.
    pub(super) async fn begin(
        engine: &'e Engine,
        database: &Database,
        organization: OrganizationId,
        ids: &BTreeSet<OperationId>,
    ) -> Result<Self, EngineError> {
        let slots = engine.slots.lock(ids).await;
        let tx = database.begin_pipelined(organization).await?;
        Ok(Self {
            engine,
            organization,
            tx,
            slots,
            seats: BTreeMap::new(),
            writes: Writes::default(),
            claim_work: Vec::new(),
            rechecks: BTreeSet::new(),
            woken: BTreeSet::new(),
            revision_ids: BTreeMap::new(),
            revised: Vec::new(),
            written: false,
        })
    }

    /// The transaction, for what belongs into it beside the operations.
    pub const fn transaction(&self) -> &OrgTransaction {
        &self.tx
    }

    /// Fences the operations of this turn and drains their inboxes; answers with what each was told.
    /// Operations that do not exist have no seat afterwards.
    pub(super) async fn fence(&mut self) -> Result<BTreeMap<OperationId, Vec<Input>>, EngineError> {
        let ids: Vec<Uuid> = self.slots.keys().map(|id| id.0).collect();
        let (locked, told) = futures::try_join!(operation::lock(&self.tx, &ids), inbox::drain(&self.tx, &ids))?;
        self.tx.begun().await?;
        for row in locked {
            let remembered = self.slots.get_mut(&row.id).and_then(|slot| slot.take(row.revision));
            let state = match remembered {
                Some(state) => state,
                None => self.recall(row.id).await?,
            };
            let seat = Seat {
                state,
                now: row.now,
                new_effects: Vec::new(),
            };
            self.seats.insert(row.id, seat);
        }
        Ok(self.sort(told))
    }

    /// Fences, and tells each operation what is in its inbox and in `tellings`. One that is told
    /// nothing is told that time has passed.
    pub(super) async fn hear(&mut self, tellings: BTreeMap<OperationId, Telling>) -> Result<(), EngineError> {
        let mut told = self.fence().await?;
        for (id, telling) in tellings {
            let mut inputs = told.remove(&id).unwrap_or_default();
            inputs.extend(telling.inputs);
            if inputs.is_empty() {
                inputs.push(Input::Timer);
            }
            self.writes.done.extend(telling.done);
            self.writes.done.extend(self.engine.open_effects.done_of(id));
            self.tell(id, inputs);
        }
        Ok(())
    }

    /// Ends the turn without writing anything. Memory that was taken out is loaded again next time.
    pub fn abandon(self) {}

    async fn recall(&self, id: OperationId) -> Result<OperationState, EngineError> {
        let loaded = load::load(&self.tx, self.organization, id).await?;
        let loaded = loaded.ok_or(EngineError::NotFound(id))?;
        for effect in loaded.effects {
            self.engine.open_effects.remember(effect);
        }
        Ok(loaded.state)
    }

    fn sort(&mut self, told: BTreeMap<OperationId, Vec<Told>>) -> BTreeMap<OperationId, Vec<Input>> {
        let mut inputs: BTreeMap<OperationId, Vec<Input>> = BTreeMap::new();
        for (id, notices) in told {
            for notice in notices {
                match notice {
                    Told::ClaimsMoved => drop(self.rechecks.insert(id)),
                    Told::Result { result } => inputs.entry(id).or_default().push(Input::AttemptResult(result)),
                }
            }
        }
        inputs
    }

    /// The state of an operation as decided so far.
    pub fn state(&self, id: OperationId) -> Option<&OperationState> {
        self.seats.get(&id).map(|seat| &seat.state)
    }

    /// The time of the turn, by the database's clock.
    pub(super) fn now(&self, id: OperationId) -> Option<DateTime<Utc>> {
        self.seats.get(&id).map(|seat| seat.now)
    }

    /// Takes in a new operation with its first decision.
    pub(super) fn seat_new(&mut self, id: OperationId, now: DateTime<Utc>, decision: Decision) {
        self.take(id, now, Vec::new(), decision);
    }

    /// Asks the domain; what it decides is written at the end of the turn.
    pub fn tell(&mut self, id: OperationId, inputs: Vec<Input>) -> Vec<CommandOutcome> {
        let Some(seat) = self.seats.remove(&id) else {
            return Vec::new();
        };
        let now = seat.now.max(seat.state.operation().last_event_at);
        let expressions = self.engine.expressions.as_ref();
        let decision = decide(seat.state, &inputs, now, &mut FreshIds, expressions);
        self.take(id, now, seat.new_effects, decision)
    }

    fn take(
        &mut self,
        id: OperationId,
        now: DateTime<Utc>,
        mut new_effects: Vec<Effect>,
        decision: Decision,
    ) -> Vec<CommandOutcome> {
        for change in decision.changes {
            match self.writes.change(id, change) {
                Some(Change::PlanRevised { revision, .. }) => self.revised.push((id, revision)),
                Some(claims) => self.claim_work.push((id, claims)),
                None => {}
            }
        }
        self.writes
            .events
            .extend(decision.events.into_iter().map(|event| (id, event)));
        for effect in decision.effects {
            new_effects.push(effect.clone());
            self.writes.effects.push(OwnedEffect {
                organization: self.organization,
                operation: id,
                effect,
            });
        }
        let state = decision.state;
        self.seats.insert(
            id,
            Seat {
                state,
                now,
                new_effects,
            },
        );
        decision.command_outcomes
    }

    /// Says what body a command came with, for its record.
    pub fn command_body(&mut self, command: control_plane_operation::InterventionId, digest: Sha256Digest) {
        self.writes.request_digests.insert(command, digest);
    }

    /// Settles claims and writes everything, so that it can be read within the transaction.
    pub async fn write(&mut self) -> Result<(), EngineError> {
        self.settle_claims().await?;
        self.write_revisions().await?;
        self.wish_wakeups();
        if self.repeats_only() && !self.writes.is_empty() {
            let lazily = "SET LOCAL synchronous_commit TO off";
            self.tx.batch_execute(lazily).await.map_err(DatabaseError::from)?;
        }
        let rows = async { Ok(self.writes.flush(&self.tx, self.organization).await?) };
        futures::try_join!(rows, facts::append(&self.tx, self.organization, &self.writes))?;
        self.written = true;
        Ok(())
    }

    /// Writes what is not written, and commits. Afterwards the world may be told.
    pub async fn commit(mut self) -> Result<Vec<Advance>, EngineError> {
        if !self.written {
            self.write().await?;
        }
        points::hit("control_plane.advance.before_commit");
        let Self {
            engine,
            organization,
            tx,
            slots,
            seats,
            writes,
            woken,
            ..
        } = self;
        tx.commit().await?;
        points::hit("control_plane.advance.after_commit");
        Ok(engine.committed(organization, slots, seats, &writes, woken))
    }

    /// Whether losing this turn's commit would only repeat idempotent work.
    fn repeats_only(&self) -> bool {
        self.writes.events.is_empty()
            && self.writes.effects.is_empty()
            && self.writes.told.is_empty()
            && self.writes.changed_operations().next().is_none()
    }

    async fn write_revisions(&mut self) -> Result<(), EngineError> {
        for (id, revision) in std::mem::take(&mut self.revised) {
            let Some(seat) = self.seats.get(&id) else { continue };
            let plan_id = self.revision_ids.get(&id).copied().unwrap_or_else(PlanId::new_v7);
            let document = seat.state.plan().document();
            plan_revision::insert(&self.tx, self.organization, id, revision, plan_id, document).await?;
        }
        Ok(())
    }

    fn wish_wakeups(&mut self) {
        for (id, seat) in &self.seats {
            let wanted = if seat.state.operation().status.is_end() {
                Wanted::Never
            } else {
                Wanted::At(seat.state.next_wakeup())
            };
            let known = self.slots.get(id).and_then(|slot| slot.wakeup);
            if known != Some(wanted) {
                self.writes.wakeups.insert(*id, wanted);
            }
        }
    }
}

impl Engine {
    /// Keeps what was committed in memory and says what is to be done now.
    fn committed(
        &self,
        organization: OrganizationId,
        mut slots: Guards,
        seats: BTreeMap<OperationId, Seat>,
        writes: &Writes,
        woken: BTreeSet<OperationId>,
    ) -> Vec<Advance> {
        let mut advances = Vec::with_capacity(seats.len());
        for (id, seat) in seats {
            let mut unknown = Slot::default();
            let slot = slots.get_mut(&id).map_or(&mut unknown, |guard| &mut **guard);
            self.open_effects.forget(id, &writes.done);
            for effect in seat.new_effects {
                self.open_effects.remember(OwnedEffect {
                    organization,
                    operation: id,
                    effect,
                });
            }
            if let Some(wanted) = writes.wakeups.get(&id) {
                slot.wakeup = Some(*wanted);
            }
            if self.newsroom.is_followed(id) {
                let news = News {
                    events: writes.events_of(id).cloned().collect(),
                    is_over: seat.state.operation().status.is_end(),
                };
                self.newsroom.tell(id, news);
            }
            advances.push(Advance {
                operation: id,
                effects: self.open_effects.open_of(id),
                next_wakeup: seat.state.next_wakeup(),
            });
            slot.state = Some(seat.state);
        }
        self.announce(organization, &advances, woken);
        advances
    }
}
