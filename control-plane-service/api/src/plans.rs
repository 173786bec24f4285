use chrono::{DateTime, Utc};
use control_plane_plan::{Advice, Plan};
use kernel::Sha256Digest;
use kernel::id::{OperationId, PlanId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

/// `POST /v1/plans`: carry out this template with these parameters, as a preview. Calls nobody.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanRequest {
    pub pack: String,
    /// The newest published version when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pack_version: Option<String>,
    pub template: String,
    pub environment: String,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub parameters: Map<String, Value>,
}

/// The query of `POST /v1/plans`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PreviewQuery {
    /// Wait until the copy of the catalog knows this resource at this version: `RESOURCE@VERSION`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_for: Option<String>,
}

/// A stored plan with its advice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanView {
    pub id: PlanId,
    pub created_at: DateTime<Utc>,
    pub created_by: String,
    /// Whether every slot is bound. Only a satisfiable plan has a digest and can be carried out.
    pub satisfiable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Sha256Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    pub advice: Advice,
    /// The operation that carries it out, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<OperationId>,
}
