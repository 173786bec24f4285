//! Background work of the service beside the durable runtime.

pub mod results;
mod running;
pub mod tidy;
