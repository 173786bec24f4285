//! The database of execution-plane-service: one table, or one thing that is done to a few, a file.
//!
//! Invariants: every statement runs in a transaction that names its organization; what decides is
//! the domain, over rows that are locked; hot paths (submit, pull, renew, reports, results) go over
//! tokio-postgres, everything else over checked sqlx.

pub mod artifacts;
pub mod attempts;
pub mod cancel;
pub mod compactions;
pub mod contents;
mod ends;
pub mod error;
mod facts;
pub mod finish;
pub mod granted;
pub mod locked;
pub mod lookups;
pub mod lost;
pub mod output_append;
pub mod output_read;
pub mod policies;
pub mod pull;
pub mod renew;
pub mod report;
pub mod results;
pub mod runners;
pub mod running;
pub mod started;
mod statements;
pub mod submit;
pub mod words;

pub use error::StoreError;
