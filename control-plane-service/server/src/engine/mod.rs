//! The engine: asks operations and keeps what they decide, in one transaction each time.
//!
//! It exists so that a command over HTTP, a result from execution-plane and a timer all take the same
//! way ([`turn::Turn`]). Invariants: it needs no durable runtime to accept anything (what is to be done
//! is in rows; a runtime or its sweep finds it); it performs no effect itself.

mod claims;
mod create;
mod crowd;
pub mod driver;
mod facts;
mod ids;
mod news;
mod open_effects;
mod slots;
pub mod turn;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use control_plane_operation::{Expressions, Input, PlanIndex};
use control_plane_ports::{Advanced, DurableRuntime, EffectId};
use database::{Database, DatabaseError, SqlState};
use kernel::id::{OperationId, OrganizationId};
use outbox::Signal;
use tokio::sync::broadcast;
use uuid::Uuid;

pub use create::{CreateRefused, NewOperationRequest};
pub use news::{News, Newsroom};
pub use open_effects::OpenEffects;
pub use turn::Turn;

use crate::store::{StoreError, load, operation};
use crowd::Crowd;
use slots::Slots;

/// How many operations are remembered between advances.
const REMEMBERED: usize = 4_096;
/// Who listens for organizations and lags further behind than this reads them again.
const CHANGES_KEPT: usize = 4_096;
/// Beyond this many, whose an operation is is asked of the database again.
const OWNERS_KNOWN: usize = 50_000;

/// An operation could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("there is no operation {0}")]
    NotFound(OperationId),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The plan cannot be carried out.
    #[error("the plan cannot be carried out")]
    Plan(#[from] control_plane_operation::IndexError),
    /// The one who was to ask the operation is gone without a word.
    #[error("operation {0} was not asked")]
    Abandoned(OperationId),
    /// Who asked together with others is told when all of them failed.
    #[error("the operation could not be asked: {0}")]
    Shared(Arc<EngineError>),
}

impl From<DatabaseError> for EngineError {
    fn from(error: DatabaseError) -> Self {
        Self::Store(error.into())
    }
}

impl EngineError {
    /// Whether the same turn may well go through when tried again at once: a deadlock or a
    /// serialization failure.
    fn is_worth_repeating(&self) -> bool {
        matches!(self, Self::Store(StoreError::Database(error)) if error.sql_state() == Some(SqlState::Serialization))
    }

    /// Whether there is no such operation.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::NotFound(_) => true,
            Self::Shared(error) => error.is_not_found(),
            _ => false,
        }
    }
}

/// What an operation is told, and which effects that answers.
#[derive(Debug, Clone, Default)]
pub struct Telling {
    pub inputs: Vec<Input>,
    pub done: Vec<Uuid>,
}

/// What asking an operation left to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Advance {
    pub operation: OperationId,
    pub effects: Vec<EffectId>,
    pub next_wakeup: Option<DateTime<Utc>>,
}

impl Advance {
    fn outcome(&self) -> Advanced {
        Advanced {
            effects: self.effects.clone(),
            next_wakeup: self.next_wakeup,
        }
    }
}

/// The engine of one process.
pub struct Engine {
    /// The api role's: turns that a request asks for see one organization, whatever they do.
    api: Database,
    /// The worker role's: turns that the runtime asks for.
    database: Database,
    slots: Slots,
    expressions: Arc<dyn Expressions + Send + Sync>,
    pub(crate) open_effects: OpenEffects,
    runtime: Arc<dyn DurableRuntime>,
    signal: Signal,
    pub(crate) newsroom: Newsroom,
    organizations: broadcast::Sender<OrganizationId>,
    crowd: Crowd,
    /// Whose an operation is, for those met lately.
    owners: Mutex<HashMap<OperationId, OrganizationId>>,
}

impl Engine {
    /// An engine that answers requests as `api` and works by itself as `database`, the worker role's.
    #[must_use]
    pub fn new(
        api: Database,
        database: Database,
        expressions: Arc<dyn Expressions + Send + Sync>,
        runtime: Arc<dyn DurableRuntime>,
        signal: Signal,
    ) -> Arc<Self> {
        Arc::new(Self {
            api,
            database,
            slots: Slots::new(REMEMBERED),
            expressions,
            open_effects: OpenEffects::default(),
            runtime,
            signal,
            newsroom: Newsroom::default(),
            organizations: broadcast::Sender::new(CHANGES_KEPT),
            crowd: Crowd::default(),
            owners: Mutex::default(),
        })
    }

    /// The worker role's database.
    pub(crate) const fn database(&self) -> &Database {
        &self.database
    }

    /// The runtime that drives the operations.
    pub(crate) fn runtime(&self) -> &Arc<dyn DurableRuntime> {
        &self.runtime
    }

    /// Organizations as their operations change: someone must listen for their results.
    pub(crate) fn organizations(&self) -> broadcast::Receiver<OrganizationId> {
        self.organizations.subscribe()
    }

    /// Begins a turn for one operation that a request is about: it is fenced, and has heard what was in its inbox.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] when the organization has no such operation.
    pub async fn turn(&self, organization: OrganizationId, id: OperationId) -> Result<Turn<'_>, EngineError> {
        let mut turn = Turn::begin(self, &self.api, organization, &BTreeSet::from([id])).await?;
        turn.hear(BTreeMap::from([(id, Telling::default())])).await?;
        if turn.state(id).is_none() {
            return Err(EngineError::NotFound(id));
        }
        Ok(turn)
    }

    /// Asks operations of one organization in one transaction.
    ///
    /// # Errors
    /// When nothing was written.
    pub(crate) async fn advance_all(
        &self,
        organization: OrganizationId,
        tellings: BTreeMap<OperationId, Telling>,
    ) -> Result<Vec<Advance>, EngineError> {
        let ids = tellings.keys().copied().collect();
        let mut turn = Turn::begin(self, &self.database, organization, &ids).await?;
        turn.hear(tellings).await?;
        turn.commit().await
    }

    /// Lets the runtime take over from an advance that it did not ask for.
    pub(crate) fn hand_over(&self, advance: Advance) {
        self.runtime.took(advance.operation, advance.outcome());
    }

    /// The plan that the operation follows now.
    pub(crate) async fn plan_of(
        &self,
        organization: OrganizationId,
        id: OperationId,
    ) -> Result<Arc<PlanIndex>, EngineError> {
        let guards = self.slots.lock(&BTreeSet::from([id])).await;
        let remembered = guards.get(&id).and_then(|slot| slot.state.as_ref());
        // Memory knows no organization; what another one owns does not exist.
        if let Some(state) = remembered.filter(|state| state.operation().organization_id == organization) {
            return Ok(state.plan().clone());
        }
        let tx = self.api.begin_hot(organization).await?;
        let row = operation::find(&tx, id).await?.ok_or(EngineError::NotFound(id))?;
        Ok(load::plan(&tx, id, row.plan_revision).await?)
    }

    fn known_organization(&self, operation: OperationId) -> Option<OrganizationId> {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.get(&operation).copied()
    }

    fn learn(&self, owned: impl IntoIterator<Item = (OrganizationId, OperationId)>) {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if owners.len() > OWNERS_KNOWN {
            owners.clear();
        }
        owners.extend(
            owned
                .into_iter()
                .map(|(organization, operation)| (operation, organization)),
        );
    }

    fn announce(&self, organization: OrganizationId, advances: &[Advance], woken: BTreeSet<OperationId>) {
        self.learn(advances.iter().map(|advance| (organization, advance.operation)));
        // Nobody listening is no fault.
        let _ = self.organizations.send(organization);
        self.signal.wake();
        for operation in woken {
            self.runtime.notify(operation);
        }
    }
}
