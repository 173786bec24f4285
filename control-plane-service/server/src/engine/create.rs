//! Creating an operation: its rows, its plan and its first decision, in one transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use control_plane_operation::{Input, NewOperation, PlanIndex, create};
use control_plane_plan::PlanDocument;
use kernel::id::{OperationId, OrganizationId, PlanId};

use super::{Engine, EngineError, Turn};
use crate::store::{operation, plan_revision, result_channel};

/// What a new operation is made from.
#[derive(Debug, Clone)]
pub struct NewOperationRequest {
    pub id: OperationId,
    pub requester: String,
    pub plan_id: PlanId,
    pub document: PlanDocument,
    pub wait_for_claims: bool,
    pub reason: String,
    pub labels: BTreeMap<String, String>,
}

impl NewOperationRequest {
    fn request(&self) -> operation::Request {
        let plan = self.document.plan();
        operation::Request {
            plan_id: self.plan_id,
            pack: plan.scenario.pack.clone(),
            pack_version: plan.scenario.pack_version.clone(),
            template: plan.scenario.template.clone(),
            environment: plan.environment.clone(),
            reason: self.reason.clone(),
            labels: self.labels.clone(),
        }
    }
}

/// Why an operation was not created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreateRefused {
    /// Another operation carries out this plan; a plan is carried out once.
    PlanCarriedOut(PlanId),
}

impl Engine {
    /// Begins a turn in which an operation with this id may be created.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn turn_for_new(&self, organization: OrganizationId, id: OperationId) -> Result<Turn<'_>, EngineError> {
        let turn = Turn::begin(self, &self.api, organization, &BTreeSet::from([id])).await?;
        // The caller writes at once.
        turn.transaction().begun().await?;
        Ok(turn)
    }
}

impl Turn<'_> {
    /// Creates the operation and takes its first decision.
    ///
    /// # Errors
    /// When the plan cannot be carried out, or the store does not answer.
    pub async fn create(&mut self, new: NewOperationRequest) -> Result<Result<(), CreateRefused>, EngineError> {
        let now = operation::now(&self.tx).await?;
        let index = Arc::new(PlanIndex::new(new.document.clone(), 1)?);
        let first = NewOperation {
            id: new.id,
            organization_id: self.organization,
            requester: new.requester.clone(),
            plan: index,
            wait_for_claims: new.wait_for_claims,
        };
        let decision = create(first, now);
        if !operation::insert(&self.tx, decision.state.operation(), &new.request()).await? {
            return Ok(Err(CreateRefused::PlanCarriedOut(new.plan_id)));
        }
        futures::try_join!(
            result_channel::open(&self.tx, self.organization),
            plan_revision::insert(&self.tx, self.organization, new.id, 1, new.plan_id, &new.document),
        )?;
        self.seat_new(new.id, now, decision);
        self.tell(new.id, vec![Input::Started]);
        Ok(Ok(()))
    }
}
