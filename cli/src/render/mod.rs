//! What a person sees: tables, states with a mark, times as ages.

mod paint;
mod screen;
mod table;
mod words;

pub use paint::paint;
pub use screen::{Screen, is_coloured, is_terminal};
pub use table::Table;
pub use words::{age, duration, mark, plural, size, word};
