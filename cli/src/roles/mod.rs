//! What this binary can be: the whole platform in one process, one service, one runner.

pub mod check;
pub mod runner;
pub mod secret;
pub mod serve;
pub mod up;
