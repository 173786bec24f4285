//! `/v1/operations`.

pub mod create;
pub mod events;
pub mod get;
pub mod intervene;
pub mod list;
pub mod node_runs;
pub mod proof;
pub mod watch;
