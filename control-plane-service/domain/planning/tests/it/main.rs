//! Planning as a specification: small worlds, written down, and what comes of them.

mod determinism;
mod estimates;
mod expansion;
mod field_notes;
mod matching;
mod properties;
mod revisions;
mod world;
