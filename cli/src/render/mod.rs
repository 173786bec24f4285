//! What a person sees: tables, states with a mark, times as ages.

mod table;
mod words;

pub use table::Table;
pub use words::{age, duration, mark, plural};
