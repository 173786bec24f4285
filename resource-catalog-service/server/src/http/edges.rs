//! `/v1/resources/{prefix}/{name}/edges`

pub mod delete;
pub mod list;
pub mod put;
