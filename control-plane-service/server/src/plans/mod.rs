//! Plans: previews, and the revisions that operations ask for.
//!
//! Invariants: a preview asks nobody: packs and the copy of the catalog are here. A plan is stored as the
//! bytes that were digested. What cannot be bound is stored as well, with the explanation only.

mod find;
mod history;
pub mod make;
pub mod planner;
mod preview;
mod problem;
mod store;

use api_kit::{OpenApiRouter, routes};

use crate::planning::PlanningApp;

/// The routes of plans.
pub fn routes() -> OpenApiRouter<PlanningApp> {
    OpenApiRouter::new()
        .routes(routes!(preview::preview_plan))
        .routes(routes!(find::get_plan))
}
