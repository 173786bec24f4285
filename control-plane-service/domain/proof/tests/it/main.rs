//! A proof holds for what happened, and for nothing else.

mod chain;
mod forging;
mod rows;
