//! The wire of control-plane-service: what its endpoints take and give.
//!
//! This crate exists so that the CLI, tests and tools can speak to control-plane without its server.
//! Invariants: it compiles without any server crate; a reader ignores fields it does not know; wire
//! types are converted at the edge and are neither the domain's nor the rows'.

mod claim;
mod client;
mod event;
mod gate;
mod intervention;
mod node_run;
mod operation;
mod packs;
mod page;
mod plans;
mod projections;
mod proof;
mod runtime;

pub use audit::{AuditFact, AuditPage, ChainHead, ChainPage};
pub use claim::{ClaimHolder, ClaimPage, ClaimView, ClaimWaiter};
pub use client::{ControlPlane, PACK_MEDIA_TYPE};
pub use event::{FeedEvent, FeedPage, FeedQuery, OperationEvent, OperationEventPage};
pub use gate::{Decision, DecisionRequest, GateList, GateState, GateTarget, GateView};
pub use intervention::{Intervention, InterventionOutcome, InterventionRequest, Resolution};
pub use node_run::{AttemptView, NodeRun, NodeRunPage, NodeRunState};
pub use operation::{
    CreateOperation, Operation, OperationCounts, OperationPage, OperationPlan, OperationState, OperationSummary,
    Overlap, RunView, WaitingFor,
};
pub use packs::*;
pub use page::{ListEventsQuery, ListNodeRunsQuery, ListOperationsQuery, PageQuery};
pub use plans::*;
pub use projections::*;
pub use proof::ProofExport;
pub use runtime::RuntimeView;
