//! control-plane-service: what can be done, what is wanted, how it will be done, and what happened.
//!
//! Invariants: an operation moves only by a turn of the [`engine`], which is one transaction; what is to
//! be done in the world is in rows before anyone does it; a durable runtime decides nothing and knows
//! nothing that is not in this service's database.

mod effects;
pub mod engine;
mod expressions;
mod figures;
pub mod http;
mod packs;
pub mod planner;
pub mod planning;
mod plans;
pub mod points;
pub mod projection;
mod read;
mod service;
mod store;
mod workers;

pub use effects::Performer;
pub use expressions::CelExpressions;
pub use service::{
    BuildError, Config, Deps, PlanningSide, Service, Worker, build, build_with, openapi, openapi_document,
};

use database::ServiceDatabase;

/// The name of this service's database and roles.
pub const DATABASE: ServiceDatabase = ServiceDatabase::new("control_plane");

/// The migrations, run as owner.
pub static MIGRATOR: sqlx::migrate::Migrator = sqlx::migrate!();
