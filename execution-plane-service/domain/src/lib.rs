//! The rules of execution-plane-service, pure: what a job's parameters mean, which submissions are
//! refused, how an attempt moves from state to state, who may get a lease, and which commands a
//! policy allows.
//!
//! Invariants: no I/O, no clock, no randomness; time and ids come in as arguments. The service and
//! the runner read a JobSpec by the same code.

pub mod attempt;
pub mod ended;
pub mod fault;
pub mod job;
pub mod lease;
pub mod policy;
pub mod routing;
pub mod secrets;
pub mod submission;

pub use fault::{Fault, FaultCode};
