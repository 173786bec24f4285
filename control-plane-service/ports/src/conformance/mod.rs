//! Suites that every adapter of a port must pass.

pub mod events;
pub mod runtime;
mod script;

pub use script::Script;
