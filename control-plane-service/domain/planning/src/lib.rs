//! Matching and planning: from a template, parameters and a snapshot of resources to a plan, or to a
//! precise account of why there is none.
//!
//! Invariants: pure and deterministic: equal inputs give equal bytes, whatever the order of the
//! candidates; a plan is a DAG; every bound resource satisfies every constraint of its slot; there is an
//! explanation with a remedy exactly when a slot cannot be bound, and applying the remedy makes it
//! bindable (unless the remedy is "make this expression true").

mod assignment;
mod blast;
mod candidate;
mod constraint;
mod diff;
mod error;
mod estimate;
mod expand;
mod fan_out;
mod graph;
mod job;
mod matching;
mod pin;
mod places;
mod planner;
mod remedy;
mod selection;
mod slot;
mod update;

pub use blast::{Dependent, blast_radius};
pub use candidate::{Candidate, Capability, Edge, Place, Snapshot};
pub use diff::{GateChange, NodeChange, PlanDiff, diff};
pub use error::PlanningError;
pub use estimate::{Sample, estimate};
pub use expand::MAX_NODES;
pub use fan_out::MAX_ITEMS;
pub use matching::{Bound, Matched, match_slots};
pub use pin::pin_of;
pub use planner::{Planned, Request, plan, replan};
pub use remedy::{Change, Remedy};
pub use selection::{LeftOutBy, SlotSelection, selections};
