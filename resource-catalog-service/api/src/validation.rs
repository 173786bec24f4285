use contracts::LifecycleStatus;
use kernel::id::{OperationId, ResourceUid};
use kernel::{DottedName, ResourceId, Sha256Digest};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::PinInputs;

/// "Are these still as the plan saw them?", for many resources in one transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ValidationRequest {
    /// The operation that asks; required with `set_finalizers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<OperationId>,
    /// Keep every resource from being deleted until the operation lets go. Set only when all are valid. Bumps no
    /// version.
    #[serde(default)]
    pub set_finalizers: bool,
    /// At most 1,000, none twice.
    #[schema(min_items = 1, max_items = 1000)]
    pub resources: Vec<ValidationItem>,
}

/// What is expected of one resource. Absent expectations are not checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ValidationItem {
    pub resource_id: ResourceId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<ResourceUid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_pin: Option<Sha256Digest>,
    /// The pin was made with [`PinInputs::restricted_to`] these capabilities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin_capabilities: Option<Vec<DottedName>>,
    /// The lifecycle must be one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lifecycle_in: Vec<LifecycleStatus>,
    /// Each must be provided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<CapabilityRequirement>,
}

impl ValidationItem {
    /// Expects only that the resource exists.
    #[must_use]
    pub fn exists(resource_id: ResourceId) -> Self {
        Self {
            resource_id,
            uid: None,
            expected_version: None,
            expected_pin: None,
            pin_capabilities: None,
            lifecycle_in: Vec::new(),
            capabilities: Vec::new(),
        }
    }
}

/// A capability, with a range for its attribute `version` where one is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CapabilityRequirement {
    pub capability: DottedName,
    /// `>=1.28, <2`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// The answer, in the order of the request. 200 also when something is not valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ValidationResponse {
    /// All of them are.
    pub valid: bool,
    pub finalizers_set: bool,
    pub resources: Vec<ValidationResult>,
}

/// One resource: what does not hold, and how it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ValidationResult {
    pub resource_id: ResourceId,
    pub valid: bool,
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// Null when there is no such resource.
    #[serde(default)]
    pub current: Option<ValidatedResource>,
}

/// The resource as it is now, in what a plan and its jobs read. Connection data is in `pin_inputs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ValidatedResource {
    pub uid: ResourceUid,
    pub version: i64,
    /// Over all of `pin_inputs`, unrestricted.
    pub pin: Sha256Digest,
    pub pin_inputs: PinInputs,
    #[serde(default)]
    pub environment: Option<String>,
}

/// One expectation that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fault {
    pub code: FaultCode,
    pub detail: String,
}

/// The kind of an expectation that does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultCode {
    NotFound,
    OtherIncarnation,
    VersionMoved,
    PinMoved,
    LifecycleNotAllowed,
    CapabilityMissing,
    CapabilityVersionMismatch,
}
