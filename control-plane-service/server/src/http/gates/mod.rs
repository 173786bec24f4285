//! `/v1/operations/{operation_id}/gates`.

pub mod decide;
pub mod list;
