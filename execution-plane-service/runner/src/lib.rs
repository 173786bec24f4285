//! The runner: a process that pulls attempts from execution-plane-service and runs them.
//!
//! Nothing ever calls in: it lives where it may reach the service and the targets. It survives
//! restarts of the service and its own, and its reports are true: whether a job had begun, what ended
//! it, and whether anything of it may still run somewhere.
//!
//! [`run`] is the whole of it; [`Config`] says what it offers and where it may write, [`Deps`] what
//! only the program can name (secrets, isolation).

mod attempt;
mod config;
mod content;
mod jobs;
mod output;
mod points;
mod runner;
mod secrets;
mod session;
mod ssh;
mod standing;
mod state;
mod stop;

pub use config::{Config, Deps, SecretRule};
pub use points::POINTS as FAILPOINTS;
pub use runner::{RunnerError, run};
pub use state::StateError;
