//! Packs, the copy of the catalog, and plans.

mod contract;
mod delivery;
mod harness;
mod packs;
mod plans;
mod projection;
