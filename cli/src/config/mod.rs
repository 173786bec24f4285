//! Configuration of the roles: one TOML file, environment variables over it, every fault at once.
//!
//! Invariants: a secret is a reference (`file:///path` or `env://NAME`), resolved here and shown nowhere;
//! an unknown key is a fault, never ignored; `PLATFORM_<SECTION>_<KEY>` wins over the file.

mod reader;
mod role;
mod secret;

pub use role::{RoleFile, RunnerSection, ServiceSection, role_of};
pub use secret::resolve;
