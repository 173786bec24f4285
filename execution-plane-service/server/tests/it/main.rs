//! execution-plane-service over HTTP, on a real PostgreSQL.

mod artifacts;
mod audit;
mod cancelling;
mod contract;
mod durability;
mod feed;
mod harness;
mod leases;
mod metrics;
mod output;
mod policies;
mod reordering;
mod results;
mod runners;
mod running;
mod schema;
mod slice;
mod submission;
mod tenancy;
