//! Packs, the copy of the catalog, and plans.

mod contract;
mod delivery;
pub mod harness;
mod packs;
mod plans;
mod projection;
