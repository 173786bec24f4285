//! `/v1/resource-types`

pub mod get;
pub mod list;
pub mod put;
