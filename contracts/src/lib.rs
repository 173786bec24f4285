//! The six shapes that cross service borders. Field names and enum values are fixed by the source
//! document; an optional field may be added, none may be renamed or dropped.
//!
//! Readers ignore fields they do not know (two versions run side by side, receivers upgrade first);
//! strictness belongs to the public write edge, not to these types.

mod artifact;
mod evidence;
mod execution_result;
mod job_spec;
mod projection_event;
mod resource_update;
pub mod schema;
mod status;

pub use artifact::{ArtifactRef, ArtifactStorage, ProducedBy, Sensitivity};
pub use evidence::{EvidenceRef, EvidenceResult, EvidenceType};
pub use execution_result::{
    ExecutionResult, ExecutionStatus, ExitCategory, ExitReason, ExitSummary, JobStarted, LogRef,
};
pub use job_spec::{
    ArtifactInput, ContentRef, Controls, Inputs, Isolation, JobSpec, JobType, OutputContract, RunnerRequest,
    ScenarioRef, SecretDelivery, SecretInput, SecretRef, SecretRefError, Target, TargetResource,
};
pub use projection_event::{CatalogProjectionEvent, ProjectionEventType};
pub use resource_update::{Changes, ProvidedCapabilities, ResourceUpdateCommand};
pub use status::{HealthStatus, LifecycleStatus};
