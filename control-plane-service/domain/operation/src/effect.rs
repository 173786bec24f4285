//! What is to be done in the world once a decision is committed. Every effect is idempotent by its id;
//! whoever carries it out repeats transport only. Effects on one attempt are carried out in order.

use contracts::{JobSpec, ResourceUpdateCommand};
use kernel::ResourceId;
use kernel::id::{AttemptId, ResourceUid};
use serde::{Deserialize, Serialize};

use crate::EffectId;

/// One effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    pub id: EffectId,
    #[serde(flatten)]
    pub kind: EffectKind,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "effect")]
pub enum EffectKind {
    /// Ask the catalog about bound resources while holding them; answered by
    /// [`crate::Input::BindingsValidated`] or [`crate::Input::CatalogUnreachable`] with this effect's id.
    ValidateBindings { resources: Vec<BindingToValidate> },
    /// Hand a job to execution-plane; idempotent by the attempt id in it.
    SubmitAttempt { spec: Box<JobSpec> },
    /// End an attempt. Also of one whose submission has not arrived: it must never start then.
    CancelAttempt { attempt_id: AttemptId, force: bool },
    /// Tell the catalog what became true; idempotent by its command id.
    SendResourceUpdate { command: Box<ResourceUpdateCommand> },
    /// The run has ended: take the operation's finalizers off its resources.
    ReleaseFinalizers,
}

/// A bound resource to ask about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindingToValidate {
    pub slot: String,
    pub uid: ResourceUid,
    pub resource_id: ResourceId,
}
