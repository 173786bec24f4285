//! The platform as separate processes, for tests and benchmarks that kill, restart and measure it.
//!
//! Nothing here reaches inside: processes are started as an operator would start them, from config files,
//! and asked over their APIs.

mod asking;
mod deployment;
mod other_version;
mod program;
mod rows;
mod scenario;
mod small_disk;
mod wiring;
mod world;

pub use deployment::{Deployment, Options, Role};
pub use other_version::{Changed, OtherVersion};
pub use program::platform_program;
pub use rows::DATABASES;
pub use scenario::{MARKS, Scenario, one_host, takes_a_host};
pub use small_disk::SmallDisk;
pub use wiring::Link;
pub use world::World;
