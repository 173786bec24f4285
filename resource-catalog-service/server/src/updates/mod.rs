//! Resource update commands, combined: what waits while a transaction is under way goes into the next one, up to 64
//! commands of one organization, each with an outcome of its own.
//!
//! Invariants: a command is decided by exactly one transaction, for ever; its outcome, the version it made and the
//! change record are committed together; a request that is given up by its client does not take others down with it
//! (batches run as tasks of their own).

mod batch;
mod queue;

pub use batch::Answer;
pub use queue::Updates;
