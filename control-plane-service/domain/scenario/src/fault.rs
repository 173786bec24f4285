//! What is wrong with a pack: every fault at once, each with its place and what to do about it.
//!
//! Reading never stops at the first fault; only a file that is not YAML at all yields a single one.

use core::cell::RefCell;
use core::fmt;

use serde::Serialize;

/// A place in a file: line and column, both counted from 1. The default stands for the file as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

/// One thing that is wrong in a pack.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Fault {
    /// Path inside the pack.
    pub file: String,
    #[serde(flatten)]
    pub at: Position,
    /// A stable word for the kind of fault.
    pub code: FaultCode,
    pub message: String,
    pub remedy: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            at,
            code,
            message,
            remedy,
        } = self;
        write!(
            f,
            "{file}:{}:{}: {}: {message} ({remedy})",
            at.line,
            at.column,
            code.as_str()
        )
    }
}

macro_rules! fault_codes {
    ($($(#[$meta:meta])* $variant:ident = $word:literal),+ $(,)?) => {
        /// The kind of a fault. The words are stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub enum FaultCode {
            $($(#[$meta])* #[serde(rename = $word)] $variant),+
        }

        impl FaultCode {
            /// The word on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }
        }
    };
}

fault_codes! {
    /// The file is not YAML, or uses what packs may not use (aliases, tags, several documents).
    Syntax = "syntax",
    DuplicateKey = "duplicate_key",
    UnknownField = "unknown_field",
    MissingField = "missing_field",
    WrongType = "wrong_type",
    InvalidValue = "invalid_value",
    DuplicateName = "duplicate_name",
    UnknownParameter = "unknown_parameter",
    UnknownSlot = "unknown_slot",
    UnknownNode = "unknown_node",
    UnknownLane = "unknown_lane",
    UnknownRetryPolicy = "unknown_retry_policy",
    Cycle = "cycle",
    BadExpression = "bad_expression",
    BadSchema = "bad_schema",
    JobParameters = "job_parameters",
    JobTypeUnavailable = "job_type_unavailable",
    SecretValue = "secret_value",
    MissingContent = "missing_content",
    MissingFile = "missing_file",
    UnexpectedFile = "unexpected_file",
    Unprovided = "unprovided",
    LimitExceeded = "limit_exceeded",
}

/// The faults found so far in one file. Shared by everything that reads the file, hence the cell.
#[derive(Debug)]
pub(crate) struct Faults {
    file: String,
    list: RefCell<Vec<Fault>>,
}

impl Faults {
    pub(crate) fn of(file: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            list: RefCell::new(Vec::new()),
        }
    }

    pub(crate) fn add(&self, at: Position, code: FaultCode, message: impl Into<String>, remedy: impl Into<String>) {
        self.list.borrow_mut().push(Fault {
            file: self.file.clone(),
            at,
            code,
            message: message.into(),
            remedy: remedy.into(),
        });
    }

    pub(crate) fn into_list(self) -> Vec<Fault> {
        self.list.into_inner()
    }
}

/// ` (did you mean NAME?)` for a name close to `wanted`, else what there is.
pub(crate) fn suggestion<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = known.into_iter().collect();
    known.sort_unstable();
    let nearest = known
        .iter()
        .map(|name| (distance(wanted, name), *name))
        .min()
        .filter(|(distance, _)| *distance <= 2.max(wanted.chars().count() / 3));
    match nearest {
        Some((_, name)) => format!("did you mean `{name}`?"),
        None if known.is_empty() => "there is none to choose from".to_owned(),
        None => format!("there are: {}", known.join(", ")),
    }
}

/// Levenshtein's distance, for names of bounded length.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_suggested_and_else_the_choice_is_listed() {
        assert_eq!(suggestion("neds", ["needs", "when"]), "did you mean `needs`?");
        assert_eq!(suggestion("colour", ["needs", "when"]), "there are: needs, when");
        assert_eq!(suggestion("x", []), "there is none to choose from");
    }
}
