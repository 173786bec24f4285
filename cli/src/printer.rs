//! The one place that writes to standard output and error.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::io::Write as _;

use serde::Serialize;

use crate::args::Output;
use crate::error::CliError;
use crate::render::Table;

/// Prints for people or for programs.
#[derive(Debug, Clone, Copy)]
pub struct Printer {
    output: Output,
}

impl Printer {
    pub const fn new(output: Output) -> Self {
        Self { output }
    }

    pub fn is_json(self) -> bool {
        self.output == Output::Json
    }

    /// A value: as JSON for programs, else as `text` gives it.
    pub fn value<T: Serialize>(self, value: &T, text: impl FnOnce() -> String) {
        if self.is_json() {
            println!("{}", serde_json::to_string_pretty(value).unwrap_or_default());
        } else {
            println!("{}", text());
        }
    }

    /// A list: as JSON, or as a table; an empty one says so.
    pub fn list<T: Serialize>(self, items: &[T], what: &str, table: impl FnOnce() -> Table) {
        self.value(&items, || {
            let table = table();
            if table.is_empty() {
                format!("no {what}")
            } else {
                table.render()
            }
        });
    }

    /// A line for people; programs do not see it.
    pub fn say(self, text: impl AsRef<str>) {
        if !self.is_json() {
            println!("{}", text.as_ref());
        }
    }

    /// A line of a stream: one JSON value a line for programs.
    pub fn event<T: Serialize>(self, value: &T, text: impl FnOnce() -> Option<String>) {
        if self.is_json() {
            println!("{}", serde_json::to_string(value).unwrap_or_default());
        } else if let Some(text) = text() {
            println!("{text}");
        }
        let _ = std::io::stdout().flush();
    }

    /// Raw bytes of a job, as they are.
    pub fn raw(self, bytes: &[u8]) {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(bytes);
        let _ = out.flush();
    }

    /// Something beside the answer, on standard error.
    pub fn note(self, text: impl AsRef<str>) {
        eprintln!("{}", text.as_ref());
    }

    /// The error that ends the command: JSON on standard output for programs, text on standard error.
    pub fn error(self, error: &CliError) {
        if self.is_json() {
            println!("{}", error.to_json());
        } else {
            eprintln!("{error}");
        }
    }
}
