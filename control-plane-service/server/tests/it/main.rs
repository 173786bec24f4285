//! The service on a real PostgreSQL, with small real HTTP peers where the other services stand.

mod audit;
mod catalog;
mod claiming;
mod claims_agree;
mod commands;
mod contract;
mod crashing;
mod crowds;
mod execution;
mod metrics;
mod planning;
mod plans;
mod schema;
mod slice;
mod tenancy;
mod world;
