//! What this binary can be: the whole platform in one process, one service, one runner.

pub mod check;
pub mod database;
pub mod embedded;
pub mod failpoints;
mod kept_runner;
pub mod layout;
pub mod runner;
pub mod secret;
pub mod serve;
pub mod service;
pub mod telemetry;
pub mod up;
