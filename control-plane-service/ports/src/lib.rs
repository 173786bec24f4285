//! Ports of control-plane-service: what it needs from the outside, as traits of its own words.
//!
//! Invariants: a port names no product; each has a suite in `conformance` (feature of that name) that
//! every adapter passes, the embedded twin and the production part alike.

#[cfg(feature = "conformance")]
pub mod conformance;
pub mod events;
pub mod runtime;

pub use events::{EventBatch, EventSource, EventSourceError, Snapshot, SourceEvent};
pub use runtime::{Advanced, DriverError, DurableRuntime, EffectId, OperationDriver, RuntimeStatus, Wakeups};
