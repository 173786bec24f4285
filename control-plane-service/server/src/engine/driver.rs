//! The engine as a durable runtime sees it: ask, perform, and what is due.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use control_plane_ports::runtime::backoff;
use control_plane_ports::{Advanced, DriverError, EffectId, OperationDriver, Wakeups};
use database::Scope;
use kernel::id::{OperationId, OrganizationId};
use uuid::Uuid;

use super::{Engine, EngineError, Telling};
use crate::effects::{PerformError, Performer, Report, Unsettled};
use crate::points;
use crate::store::effect::{self, OwnedEffect};
use crate::store::wakeup;

/// Drives the operations of one process's engine.
pub struct Driver {
    engine: Arc<Engine>,
    performer: Arc<Performer>,
}

fn store(error: EngineError) -> DriverError {
    DriverError::Store(Box::new(error))
}

impl Driver {
    #[must_use]
    pub fn new(engine: Arc<Engine>, performer: Arc<Performer>) -> Arc<Self> {
        Arc::new(Self { engine, performer })
    }

    async fn tell(&self, owned: &OwnedEffect, report: Report) -> Result<Advanced, DriverError> {
        match report {
            Report::Done => {
                self.engine.open_effects.done(owned);
                Ok(Advanced::default())
            }
            Report::Tell(input) => {
                let telling = Telling {
                    inputs: vec![input],
                    done: vec![owned.effect.id.0],
                };
                let told = self.engine.tell(owned.organization, owned.operation, telling).await;
                told.map(|advance| advance.outcome()).map_err(store)
            }
        }
    }

    async fn unsettled(&self, owned: &OwnedEffect, error: Unsettled) -> DriverError {
        self.engine.note_failure(owned, &error).await;
        DriverError::Unreachable {
            dependency: error.dependency,
            cause: Box::new(error),
        }
    }
}

#[async_trait]
impl OperationDriver for Driver {
    async fn advance(&self, operation: OperationId) -> Result<Advanced, DriverError> {
        let Some(organization) = self.engine.organization_of(operation).await.map_err(store)? else {
            return Ok(Advanced::default());
        };
        match self.engine.tell(organization, operation, Telling::default()).await {
            Ok(advance) => Ok(advance.outcome()),
            Err(error) if error.is_not_found() => Ok(Advanced::default()),
            Err(error) => Err(store(error)),
        }
    }

    async fn perform(&self, effect: EffectId) -> Result<Advanced, DriverError> {
        let Some(owned) = self.engine.effect(effect.0).await.map_err(store)? else {
            return Ok(Advanced::default());
        };
        match self.performer.perform(&self.engine, &owned).await {
            Ok(report) => self.tell(&owned, report).await,
            Err(PerformError::Unsettled(error)) => Err(self.unsettled(&owned, error).await),
            Err(PerformError::Engine(error)) => Err(store(error)),
        }
    }
}

#[async_trait]
impl Wakeups for Engine {
    async fn claim_due(&self, limit: usize) -> Result<Vec<OperationId>, DriverError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let due = self.due(limit).await.map_err(store)?;
        let operations: BTreeSet<OperationId> = due.iter().map(|(_, operation)| *operation).collect();
        self.learn(due);
        Ok(operations.into_iter().collect())
    }
}

impl Engine {
    /// Claims what is due. Losing the claim offers it again, so nothing is synced.
    async fn due(&self, limit: i64) -> Result<Vec<(OrganizationId, OperationId)>, EngineError> {
        let tx = self.database.begin_unsynced(Scope::All).await?;
        tx.begun().await?;
        let due = wakeup::claim_due(&tx, limit).await?;
        if due.is_empty() {
            tx.rollback().await?;
            return Ok(due);
        }
        points::hit("control_plane.due.before_commit");
        tx.commit().await?;
        points::hit("control_plane.due.after_commit");
        Ok(due)
    }

    /// Whose operation it is.
    async fn organization_of(&self, operation: OperationId) -> Result<Option<OrganizationId>, EngineError> {
        if let Some(organization) = self.known_organization(operation) {
            return Ok(Some(organization));
        }
        let tx = self.database.begin_hot(Scope::All).await?;
        let organization = wakeup::organization_of(&tx, operation).await?;
        tx.rollback().await?;
        if let Some(organization) = organization {
            self.learn(vec![(organization, operation)]);
        }
        Ok(organization)
    }

    /// An effect that is not done, from memory or from its row.
    async fn effect(&self, id: Uuid) -> Result<Option<OwnedEffect>, EngineError> {
        if let Some(owned) = self.open_effects.find(id) {
            return Ok(Some(owned));
        }
        let tx = self.database.begin_hot(Scope::All).await?;
        let found = effect::find(&tx, id).await?;
        tx.rollback().await?;
        Ok(found.filter(|owned| !self.open_effects.is_done(owned.operation, id)))
    }

    /// Whether an effect is still to be done, asked again once everything before it has ended.
    pub(crate) async fn is_open(&self, owned: &OwnedEffect) -> Result<bool, EngineError> {
        let id = owned.effect.id.0;
        if self.open_effects.find(id).is_some() {
            return Ok(true);
        }
        Ok(self.effect(id).await?.is_some())
    }

    /// Withdraws the submission of an attempt that must never start.
    pub(crate) async fn withdraw(&self, cancel: &OwnedEffect, subject: Uuid) -> Result<(), EngineError> {
        let tx = self.database.begin_hot(cancel.organization).await?;
        let withdrawn = effect::before(&tx, subject, cancel.effect.id.0).await?;
        effect::done(&tx, &withdrawn).await?;
        points::hit("control_plane.withdraw.before_commit");
        tx.commit().await?;
        points::hit("control_plane.withdraw.after_commit");
        self.open_effects
            .forget(cancel.operation, &withdrawn.into_iter().collect());
        Ok(())
    }

    /// Makes a silent dependency visible in the operation. Telling it is a courtesy, so a fault here is
    /// only logged.
    async fn note_failure(&self, owned: &OwnedEffect, error: &Unsettled) {
        let note = async {
            let tx = self.database.begin_unsynced(owned.organization).await?;
            // Someone else may pick it up when this process is gone for longer than the longest pause.
            let pause = backoff(u32::MAX, 0) + std::time::Duration::from_secs(5);
            effect::failed(
                &tx,
                owned.effect.id.0,
                &error.cause.to_string(),
                chrono::Utc::now() + pause,
            )
            .await?;
            points::hit("control_plane.failure_noted.before_commit");
            tx.commit().await?;
            points::hit("control_plane.failure_noted.after_commit");
            Ok::<(), EngineError>(())
        };
        if let Err(error) = note.await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "a failed call could not be noted"
            );
        }
    }

    /// Deletes the rows of effects that are done. Losing this repeats idempotent work only.
    pub(crate) async fn delete_done_effects(&self) -> Result<(), EngineError> {
        for (organization, done) in self.open_effects.all_done() {
            let ids: Vec<Uuid> = done.iter().flat_map(|(_, ids)| ids.iter().copied()).collect();
            let tx = self.database.begin_unsynced(organization).await?;
            effect::done(&tx, &ids).await?;
            points::hit("control_plane.effects_done.before_commit");
            tx.commit().await?;
            points::hit("control_plane.effects_done.after_commit");
            for (operation, ids) in done {
                self.open_effects.forget(operation, &ids);
            }
        }
        Ok(())
    }
}
