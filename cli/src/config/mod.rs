//! Configuration of the roles: one TOML file, environment variables over it, every fault at once.
//!
//! Invariants: a secret is a reference (`file:///path` or `env://NAME`), resolved here and shown nowhere;
//! an unknown key is a fault, never ignored; `PLATFORM_<ROLE>_<SECTION>_<KEY>` wins over the file, and
//! reaches that role alone when several run in one process.

mod reader;
mod role;
mod runner;
mod secret;
mod secret_rules;
mod trust;

pub use role::{RoleFile, ServiceSection, role_of};
pub use runner::RunnerSection;
pub use secret::resolve;
pub use trust::trusted_keys;
