//! resource-catalog-service: the source of truth for what exists, what it is, how it hangs together, how it should be,
//! how it is, and what it can do.
//!
//! Invariants:
//! - A resource's versions are gapless; each has exactly one change record, written in the same transaction.
//! - A resource update command is decided once, for ever, by its id.
//! - A capability is provided only with evidence that passed for it.
//! - Everything belongs to an organization; what another has does not exist for a caller, and row-level security says
//!   so a second time.
//!
//! This crate calls no other service.

mod catalog;
mod clock;
mod config;
mod definitions;
mod failpoint;
mod feed;
mod http;
mod registry;
mod resources;
mod service;
mod store;
mod updates;
mod validations;
mod wire;

pub use config::Config;
pub use failpoint::FAILPOINTS;
pub use service::{BuildError, DATABASE, MIGRATOR, Service, build, openapi, openapi_document};
