//! What the catalog keeps in its database, one table (or tight group) a file.
//!
//! Ordinary statements go through sqlx and are checked against the schema at compile time; everything that makes a
//! new version of a resource goes through tokio-postgres, in [`write`](mod@write), which is the only place that does.

pub mod commands;
pub mod definitions;
pub mod edge_facts;
mod edges;
pub mod error;
pub mod feed;
pub mod finalizers;
pub mod list;
mod provided_capabilities;
pub mod resource;
pub mod row;
pub mod snapshot;
pub mod versions;
pub mod write;

pub use error::StoreError;
