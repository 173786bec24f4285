//! `/v1/resources/{prefix}/{name}/capabilities`

pub mod delete;
pub mod put;
