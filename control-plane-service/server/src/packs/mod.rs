//! Packs: published versions, their faults, their content on its way to execution-plane.
//!
//! Invariants: a published version never changes; what is published is valid; content is owed to
//! execution-plane from the same transaction that publishes it, and the debt stays until it is paid.

pub mod delivery;
mod find;
mod intake;
pub mod library;
mod list;
mod publish;
mod store;
mod validate;
mod view;

pub use intake::MAX_ARCHIVE;
pub use store::digest as digest_of;

use api_kit::{OpenApiRouter, routes};

use crate::planning::PlanningApp;

/// The routes of packs.
pub fn routes() -> OpenApiRouter<PlanningApp> {
    OpenApiRouter::new()
        .routes(routes!(publish::publish_pack))
        .routes(routes!(validate::validate_pack))
        .routes(routes!(list::list_packs))
        .routes(routes!(find::get_pack))
}
