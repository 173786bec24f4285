//! What people and programs read of operations, put together from rows.

pub mod claims;
pub mod events;
pub mod gates;
pub mod node_runs;
pub mod operation;
pub mod operations;
