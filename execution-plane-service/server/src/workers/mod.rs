//! Background tasks. Each takes no input beyond the tables, is idempotent, and may run in any number
//! of processes.

pub mod compactor;
pub mod reaper;
