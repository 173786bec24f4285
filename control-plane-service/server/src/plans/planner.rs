//! What the operation side asks of plans.

use std::sync::Arc;

use api_kit::{Problem, database_problem, internal_problem};
use async_trait::async_trait;
use control_plane_api::PlanRequest;
use control_plane_plan::{Advice, PlanDocument};
use database::Database;
use kernel::id::{OrganizationId, PlanId};
use serde_json::{Map, Value};
use sqlx::{Postgres, Transaction};

use super::make::{Made, make, remake};
use super::problem::unsatisfiable;
use super::store::{self, NewPlan, PlanStoreError};
use crate::packs::library::Library;
use crate::planner::{Planner, ReadyPlan};
use crate::points;
use crate::projection::Projection;

/// Plans over the service's own tables.
pub struct StoredPlanner {
    database: Database,
    library: Arc<Library>,
    projection: Arc<Projection>,
}

/// What a store's fault is to a caller.
pub fn of_store(error: PlanStoreError) -> Problem {
    match error {
        PlanStoreError::Store(error) => database_problem(&error.into()),
        other => internal_problem(&other),
    }
}

impl StoredPlanner {
    /// `database` is the api role's.
    #[must_use]
    pub const fn new(database: Database, library: Arc<Library>, projection: Arc<Projection>) -> Self {
        Self {
            database,
            library,
            projection,
        }
    }

    async fn begin(&self, organization: OrganizationId) -> Result<Transaction<'static, Postgres>, Problem> {
        self.database
            .begin(organization)
            .await
            .map_err(|error| database_problem(&error))
    }

    /// For a plan that an operation is about to follow. Nobody is told of it before the operation's own
    /// commit, which is synced and brings to the disk all that was committed before it.
    async fn begin_with_operation(
        &self,
        organization: OrganizationId,
    ) -> Result<Transaction<'static, Postgres>, Problem> {
        self.database
            .begin_sqlx_unsynced(organization)
            .await
            .map_err(|error| database_problem(&error))
    }

    async fn keep(
        &self,
        mut tx: Transaction<'static, Postgres>,
        organization: OrganizationId,
        subject: &str,
        made: Made,
    ) -> Result<ReadyPlan, Problem> {
        let Some(document) = made.document else {
            return Err(unsatisfiable(&made.advice.slots));
        };
        let id = PlanId::new_v7();
        let plan = NewPlan {
            id,
            scenario: &made.scenario,
            environment: &document.plan().environment,
            document: Some(&document),
            advice: &made.advice,
            subject,
        };
        store::insert(&mut tx, organization, &plan).await.map_err(of_store)?;
        points::hit("control_plane.plan.before_commit");
        tx.commit().await.map_err(|error| database_problem(&error.into()))?;
        points::hit("control_plane.plan.after_commit");
        Ok(ReadyPlan { plan_id: id, document })
    }
}

#[async_trait]
impl Planner for StoredPlanner {
    async fn stored(&self, organization: OrganizationId, plan_id: PlanId) -> Result<ReadyPlan, Problem> {
        let mut tx = self.begin(organization).await?;
        let row = store::find(&mut tx, plan_id).await.map_err(of_store)?;
        let row = row.ok_or_else(|| Problem::not_found(format_args!("plan {plan_id}")))?;
        let Some(document) = row.document else {
            return Err(unsatisfiable(&row.advice.slots));
        };
        Ok(ReadyPlan { plan_id, document })
    }

    async fn plan(
        &self,
        organization: OrganizationId,
        subject: &str,
        request: &PlanRequest,
    ) -> Result<ReadyPlan, Problem> {
        self.projection.follow(organization).await;
        let mut tx = self.begin_with_operation(organization).await?;
        let made = make(&mut tx, &self.library, organization, request).await?;
        self.keep(tx, organization, subject, made).await
    }

    async fn replan(
        &self,
        organization: OrganizationId,
        base: &PlanDocument,
        set: &Map<String, Value>,
    ) -> Result<ReadyPlan, Problem> {
        let mut tx = self.begin_with_operation(organization).await?;
        let made = remake(&mut tx, &self.library, organization, base.plan(), set).await?;
        self.keep(tx, organization, "service:control-plane", made).await
    }

    async fn advice(&self, organization: OrganizationId, plan_id: PlanId) -> Result<Option<Advice>, Problem> {
        let mut tx = self.begin(organization).await?;
        store::advice(&mut tx, plan_id).await.map_err(of_store)
    }
}
