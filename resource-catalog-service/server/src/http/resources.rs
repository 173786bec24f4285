//! `/v1/resources`

pub mod create;
pub mod get;
pub mod list;
pub mod put;
