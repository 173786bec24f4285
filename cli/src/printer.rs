//! The one place that writes to standard output and error.
//!
//! Invariant: a reader that went away (`platform get resources | head`) is no fault. What cannot be
//! written is dropped; commands that stay ask [`Printer::is_heard`] whether anyone still reads.

use std::borrow::Cow;
use std::io::{ErrorKind, Write};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::args::Output;
use crate::error::CliError;
use crate::pages::Listed;
use crate::render::{Table, is_coloured, paint};

/// Set when the reader of standard output has gone.
static GONE: AtomicBool = AtomicBool::new(false);

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
            line(&serde_json::to_string_pretty(value).unwrap_or_default());
        } else {
            line(&text());
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

    /// A list that may have been cut: where it was, that is said beside it.
    pub fn listed<T: Serialize>(self, listed: &Listed<T>, what: &str, table: impl FnOnce(&[T]) -> Table) {
        self.list(&listed.items, what, || table(&listed.items));
        if listed.cut {
            self.note(format!(
                "these are the first {}; there are more: give a higher --limit, or none for all",
                listed.items.len()
            ));
        }
    }

    /// A line for people; programs do not see it.
    pub fn say(self, text: impl AsRef<str>) {
        if !self.is_json() {
            line(text.as_ref());
        }
    }

    /// A line of a stream: one JSON value a line for programs.
    pub fn event<T: Serialize>(self, value: &T, text: impl FnOnce() -> Option<String>) {
        if self.is_json() {
            line(&serde_json::to_string(value).unwrap_or_default());
        } else if let Some(text) = text() {
            line(&text);
        }
    }

    /// Raw bytes of a job, as they are.
    pub fn raw(self, bytes: &[u8]) {
        let mut out = std::io::stdout().lock();
        let written = out.write_all(bytes).and_then(|()| out.flush());
        remember(written);
    }

    /// Something beside the answer, on standard error.
    pub fn note(self, text: impl AsRef<str>) {
        let _ = writeln!(std::io::stderr().lock(), "{}", text.as_ref());
    }

    /// The error that ends the command: JSON on standard output for programs, text on standard error.
    pub fn error(self, error: &CliError) {
        if self.is_json() {
            line(&error.to_json().to_string());
        } else {
            self.note(error.to_string());
        }
    }

    /// Whether standard output still has a reader, as far as the last writing told.
    pub fn is_heard(self) -> bool {
        !GONE.load(Ordering::Relaxed)
    }
}

/// Whether marks are coloured; the terminal does not change while the program runs.
static COLOURED: LazyLock<bool> = LazyLock::new(is_coloured);

fn line(text: &str) {
    let painted = if *COLOURED { paint(text) } else { Cow::Borrowed(text) };
    let text = painted.as_ref();
    let mut out = std::io::stdout().lock();
    let written = writeln!(out, "{text}").and_then(|()| out.flush());
    remember(written);
}

fn remember(written: std::io::Result<()>) {
    if written.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        GONE.store(true, Ordering::Relaxed);
    }
}
