use client_kit::FieldError;
use kernel::ResourceId;
use kernel::id::{CommandId, ResourceUid};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What became of a resource update command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Applied,
    Replayed,
    Conflict,
    Rejected,
}

/// The answer to `POST /v1/resource-updates`: 200 for applied and replayed. A conflict is a 409 and a rejection a
/// 422 problem that carry this value as the member `update`; [`crate::Client::update_resource`] gives it for all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UpdateOutcome {
    pub command_id: CommandId,
    pub resource_id: ResourceId,
    pub outcome: Outcome,
    /// When replayed: what the first answer was. The rest of this value repeats it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_outcome: Option<Outcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<ResourceUid>,
    /// When applied: the version that the command made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<UpdateConflict>,
    /// When rejected: every fault, by field of the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

impl UpdateOutcome {
    /// What the command came to, whether now or the first time.
    #[must_use]
    pub fn settled(&self) -> Outcome {
        self.first_outcome.unwrap_or(self.outcome)
    }
}

/// Why a command's expectation did not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UpdateConflict {
    pub expected_version: i64,
    pub current_version: i64,
    pub current_uid: ResourceUid,
    /// The command meant another incarnation. Nothing of it can be rebased.
    pub other_incarnation: bool,
    /// What changed since the expected version.
    pub differs: Vec<Difference>,
    /// Whether a change touched what the command touches. If not, the same changes may be sent under a new
    /// command id with the current version.
    pub overlaps: bool,
}

/// One place that changed since the version a command expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Difference {
    /// JSON Pointer into the resource; empty when the changes since are not known one by one.
    pub pointer: String,
    /// The latest version that changed it.
    pub version: i64,
    /// Whether the command touches it too.
    pub overlaps: bool,
}
