//! `/v1/capability-definitions`

pub mod get;
pub mod list;
pub mod put;
