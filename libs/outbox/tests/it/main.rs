//! The classic faults of an outbox, each on a real PostgreSQL.

mod fencing;
mod interleavings;
mod order;
mod poison;
mod reading;
mod reaping;
mod world;
