//! The catalog as a service: over HTTP, on a real PostgreSQL.

mod audit;
mod capabilities;
mod concurrency;
mod contract;
mod definitions;
mod events;
mod faults;
mod harness;
mod listing;
mod metrics;
mod resources;
mod schema;
mod tenancy;
mod updates;
mod validations;
