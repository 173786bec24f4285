//! Scenario packs: what can be done, written down by people, read here with suspicion.
//!
//! Invariants: reading a pack is pure and total: any bytes give either a pack or its faults, and the
//! faults are *all* of them, each with file, line, column, a stable code and a remedy. A pack that was
//! read holds nothing that planning could still find contradictory in itself. No pack can run code in
//! the service: expressions are CEL within the limits of [`expression`].

mod bundle;
pub mod dynamic;
pub mod expression;
mod fault;
pub mod job_types;
mod manifest;
mod pack;
mod parameters;
mod reader;
mod reading;
mod secrets;
pub mod template;
mod yaml;

pub use bundle::{Bundle, BundleError, File, MAX_FILE_BYTES, MAX_FILES, MAX_PACK_BYTES, MAX_PATH_BYTES};
pub use fault::{Fault, FaultCode, Position};
pub use pack::{Content, Pack};
pub use parameters::ValueFault;
pub use template::Template;
