//! Effects: what is done in the world for an operation, once its decision is committed.
//!
//! Invariants: an effect is idempotent by its id; whoever performs it repeats transport only and reports
//! back only by telling the operation; effects on one attempt are performed one after the other, so that
//! a cancel never overtakes a submission that is under way.

mod answer;
mod cancel;
mod release;
mod subjects;
mod submit;
mod update;
mod validate;

use std::sync::Arc;

use control_plane_operation::{EffectKind, Input};
use execution_plane_api::client::ExecutionPlane;
use kernel::id::OrganizationId;

use crate::engine::Engine;
use crate::store::effect::{OwnedEffect, subject};
use subjects::Subjects;
use submit::Submissions;

/// What performing an effect came to.
#[derive(Debug)]
pub enum Report {
    /// The operation is told.
    Tell(Input),
    /// There is nothing to tell; the effect is done.
    Done,
}

/// The other side gave no answer that settles the effect.
#[derive(Debug, thiserror::Error)]
#[error("{dependency} gave no answer")]
pub struct Unsettled {
    pub dependency: &'static str,
    #[source]
    pub cause: Box<dyn std::error::Error + Send + Sync>,
}

/// Carries out effects against the other services.
pub struct Performer {
    catalog: resource_catalog_api::Client,
    execution: client_kit::Client,
    submissions: Submissions,
    subjects: Subjects,
}

impl Performer {
    /// Performs through these clients, each acting for the organization of the effect.
    #[must_use]
    pub fn new(catalog: client_kit::Client, execution: client_kit::Client) -> Arc<Self> {
        Arc::new(Self {
            catalog: catalog.into(),
            submissions: Submissions::new(execution.clone()),
            execution,
            subjects: Subjects::default(),
        })
    }

    fn execution(&self, organization: OrganizationId) -> ExecutionPlane {
        ExecutionPlane::new(self.execution.acting_for(organization))
    }

    fn catalog(&self, organization: OrganizationId) -> resource_catalog_api::Client {
        self.catalog.acting_for(organization)
    }

    /// Performs one effect, once everything before it on the same subject has ended here.
    ///
    /// # Errors
    /// [`Unsettled`]: the same call is made again later.
    pub(crate) async fn perform(&self, engine: &Arc<Engine>, owned: &OwnedEffect) -> Result<Report, PerformError> {
        let _turn = self.subjects.wait_for(subject(&owned.effect)).await;
        if !engine.is_open(owned).await? {
            return Ok(Report::Done);
        }
        match &owned.effect.kind {
            EffectKind::SubmitAttempt { spec } => self.submit(owned, spec).await,
            EffectKind::CancelAttempt { attempt_id, .. } => self.cancel(engine, owned, *attempt_id).await,
            EffectKind::ValidateBindings { resources } => self.validate(engine, owned, resources).await,
            EffectKind::SendResourceUpdate { command } => self.update(engine, owned, command).await,
            EffectKind::ReleaseFinalizers => self.release(owned).await,
        }
    }
}

/// Why an effect is not done.
#[derive(Debug, thiserror::Error)]
pub enum PerformError {
    #[error(transparent)]
    Unsettled(#[from] Unsettled),
    #[error(transparent)]
    Engine(#[from] crate::engine::EngineError),
}
