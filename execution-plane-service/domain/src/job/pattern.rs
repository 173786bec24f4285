//! Regular expressions of checks, compiled when a job is submitted so that a bad one never runs.

use regex::bytes::{Regex, RegexBuilder};

/// A regular expression over bytes: output need not be UTF-8. `^` and `$` match at line borders.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

/// The text is no regular expression, or too big a one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a regular expression: {reason}")]
pub struct PatternError {
    reason: String,
}

impl Pattern {
    /// Compiles `text` under a size limit; matching is linear in the input.
    ///
    /// # Errors
    /// When it is no regular expression.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        RegexBuilder::new(text)
            .multi_line(true)
            .size_limit(1 << 20)
            .build()
            .map(Self)
            .map_err(|error| PatternError {
                reason: error.to_string().lines().last().unwrap_or_default().trim().to_owned(),
            })
    }

    #[must_use]
    pub fn is_match(&self, bytes: &[u8]) -> bool {
        self.0.is_match(bytes)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}
