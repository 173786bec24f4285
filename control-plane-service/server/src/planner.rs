//! What the operation side needs from the planning side of this service.

use api_kit::Problem;
use async_trait::async_trait;
use control_plane_api::PlanRequest;
use control_plane_plan::{Advice, PlanDocument};
use kernel::id::{OrganizationId, PlanId};

use serde_json::{Map, Value};

/// A plan that can be carried out.
#[derive(Debug, Clone)]
pub struct ReadyPlan {
    pub plan_id: PlanId,
    pub document: PlanDocument,
}

/// Makes and keeps plans.
#[async_trait]
pub trait Planner: Send + Sync + 'static {
    /// A stored plan of the organization.
    ///
    /// # Errors
    /// 404 when there is none, 422 when it is unsatisfiable.
    async fn stored(&self, organization: OrganizationId, plan_id: PlanId) -> Result<ReadyPlan, Problem>;

    /// Plans as a preview does, and stores the plan.
    ///
    /// # Errors
    /// As a preview; 422 with what stands in the way when it is unsatisfiable.
    async fn plan(
        &self,
        organization: OrganizationId,
        subject: &str,
        request: &PlanRequest,
    ) -> Result<ReadyPlan, Problem>;

    /// The same scenario with the bindings of `base` and some parameters changed, as the next revision of an
    /// operation's plan.
    ///
    /// # Errors
    /// 422 when the changed parameters are not valid or lead to no plan.
    async fn replan(
        &self,
        organization: OrganizationId,
        base: &PlanDocument,
        set: &Map<String, Value>,
    ) -> Result<ReadyPlan, Problem>;

    /// What a preview told beside a plan.
    ///
    /// # Errors
    /// When it cannot be read.
    async fn advice(&self, organization: OrganizationId, plan_id: PlanId) -> Result<Option<Advice>, Problem>;
}
