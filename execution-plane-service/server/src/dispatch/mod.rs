//! Bringing attempts and waiting runners together inside one process, and waking who waits.
//!
//! Nothing here is a promise: what is promised is in the database, and everyone who waits also looks
//! there once a second, so that another process's doings are seen too.

pub mod batcher;
pub mod signals;
pub mod waiters;

pub use batcher::Batcher;
pub use signals::Signals;
pub use waiters::{Handed, Waiters};
