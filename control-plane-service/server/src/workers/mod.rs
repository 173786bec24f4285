//! Background work of the service beside the durable runtime.

pub mod results;
pub mod tidy;
