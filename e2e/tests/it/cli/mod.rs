//! The commands as a person and a program use them: every one of them against a live platform, and what
//! they say when they cannot do what was asked.

mod catalog;
mod coverage;
mod errors;
mod one_process;
mod operations;
mod pack;
mod person;
mod terminal;
