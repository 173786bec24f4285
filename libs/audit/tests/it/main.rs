//! The chain over audit facts, on a real PostgreSQL: what it gives, and what it detects.

mod chaining;
mod roles;
mod tampering;
mod world;
