//! Between the wire and the domain. The two are told apart so that each can change alone.

pub mod capability;
pub mod edge;
pub mod fault;
pub mod resource;
pub mod resource_type;
pub mod update;
