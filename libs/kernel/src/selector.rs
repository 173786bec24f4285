//! Label selectors, in the syntax that Kubernetes users know:
//! `env=prod,tier!=db,zone in (a,b),!legacy,gpu`.

use core::fmt;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Longest accepted selector text, in bytes.
pub const MAX_SELECTOR: usize = 4096;
/// Most requirements in one selector.
pub const MAX_TERMS: usize = 64;

/// One requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "op")]
pub enum Term {
    /// The label is there with exactly one of the values (`=`, `==`, `in`).
    In { key: String, values: Vec<String> },
    /// The label is absent or has none of the values (`!=`, `notin`).
    NotIn { key: String, values: Vec<String> },
    /// The label is there.
    Exists { key: String },
    /// The label is absent.
    Absent { key: String },
}

/// A conjunction of label requirements. The empty selector matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Selector {
    /// All of these must hold.
    pub terms: Vec<Term>,
}

/// The selector text is wrong at `position` (a byte offset).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid selector at position {position}: {problem}")]
pub struct SelectorError {
    /// Byte offset of the fault.
    pub position: usize,
    /// What was expected or refused.
    pub problem: String,
}

impl Selector {
    /// Parses `a=b,c!=d,e in (x,y),f notin (z),g,!h`.
    ///
    /// # Errors
    /// The first fault with its byte position.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.len() > MAX_SELECTOR {
            return Err(SelectorError {
                position: MAX_SELECTOR,
                problem: format!("longer than {MAX_SELECTOR} bytes"),
            });
        }
        let mut parser = Parser { text, at: 0 };
        let mut terms = Vec::new();
        parser.spaces();
        if parser.done() {
            return Ok(Self::default());
        }
        loop {
            terms.push(parser.term()?);
            if terms.len() > MAX_TERMS {
                return Err(parser.fault(format!("more than {MAX_TERMS} requirements")));
            }
            parser.spaces();
            if parser.done() {
                return Ok(Self { terms });
            }
            parser.expect(',')?;
        }
    }

    /// Whether `labels` satisfy every requirement.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.terms.iter().all(|term| term.matches(labels))
    }

    /// The first requirement that `labels` do not satisfy.
    #[must_use]
    pub fn first_unmet(&self, labels: &BTreeMap<String, String>) -> Option<&Term> {
        self.terms.iter().find(|term| !term.matches(labels))
    }
}

impl Term {
    /// Whether `labels` satisfy this requirement.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Self::In { key, values } => labels.get(key).is_some_and(|v| values.contains(v)),
            Self::NotIn { key, values } => labels.get(key).is_none_or(|v| !values.contains(v)),
            Self::Exists { key } => labels.contains_key(key),
            Self::Absent { key } => !labels.contains_key(key),
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::In { key, values } if values.len() == 1 => write!(f, "{key}={}", values[0]),
            Self::NotIn { key, values } if values.len() == 1 => write!(f, "{key}!={}", values[0]),
            Self::In { key, values } => write!(f, "{key} in ({})", values.join(",")),
            Self::NotIn { key, values } => write!(f, "{key} notin ({})", values.join(",")),
            Self::Exists { key } => f.write_str(key),
            Self::Absent { key } => write!(f, "!{key}"),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{term}")?;
        }
        Ok(())
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn done(&self) -> bool {
        self.at == self.text.len()
    }

    fn fault(&self, problem: impl Into<String>) -> SelectorError {
        SelectorError {
            position: self.at,
            problem: problem.into(),
        }
    }

    fn spaces(&mut self) {
        let trimmed = self.rest().trim_start_matches(' ').len();
        self.at = self.text.len() - trimmed;
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, wanted: char) -> Result<(), SelectorError> {
        self.spaces();
        if self.take(wanted.encode_utf8(&mut [0; 4])) {
            Ok(())
        } else {
            Err(self.fault(format!("expected '{wanted}'")))
        }
    }

    fn word(&mut self, what: &str, may_be_empty: bool) -> Result<String, SelectorError> {
        self.spaces();
        let length = self
            .rest()
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/')))
            .unwrap_or(self.rest().len());
        if length == 0 && !may_be_empty {
            return Err(self.fault(format!("expected a label {what}")));
        }
        let word = self.rest()[..length].to_owned();
        self.at += length;
        Ok(word)
    }

    fn term(&mut self) -> Result<Term, SelectorError> {
        self.spaces();
        if self.take("!") {
            return Ok(Term::Absent {
                key: self.word("key", false)?,
            });
        }
        let key = self.word("key", false)?;
        self.spaces();
        if self.take("!=") {
            return Ok(Term::NotIn {
                key,
                values: vec![self.word("value", true)?],
            });
        }
        if self.take("==") || self.take("=") {
            return Ok(Term::In {
                key,
                values: vec![self.word("value", true)?],
            });
        }
        if self.take("notin ") || self.take("notin(") {
            return Ok(Term::NotIn {
                key,
                values: self.list()?,
            });
        }
        if self.take("in ") || self.take("in(") {
            return Ok(Term::In {
                key,
                values: self.list()?,
            });
        }
        Ok(Term::Exists { key })
    }

    fn list(&mut self) -> Result<Vec<String>, SelectorError> {
        if !self.text[..self.at].ends_with('(') {
            self.expect('(')?;
        }
        let mut values = Vec::new();
        loop {
            values.push(self.word("value", true)?);
            self.spaces();
            if self.take(")") {
                values.sort();
                values.dedup();
                return Ok(values);
            }
            self.expect(',')?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn every_operator_selects_as_it_reads() {
        let node = labels(&[("env", "prod"), ("zone", "a"), ("gpu", "")]);
        for (text, expected) in [
            ("", true),
            ("env=prod", true),
            ("env==prod", true),
            ("env!=prod", false),
            ("env in (prod, dev)", true),
            ("env notin (prod)", false),
            ("other!=x", true),
            ("other=x", false),
            ("gpu", true),
            ("!gpu", false),
            ("!other", true),
            ("env=prod, zone in(a,b),!x", true),
            ("gpu=", true),
            ("in=x", false),
        ] {
            assert_eq!(Selector::parse(text).unwrap().matches(&node), expected, "{text:?}");
        }
    }

    #[test]
    fn faults_carry_their_position() {
        for (text, position) in [
            ("=x", 0),
            ("a=b,", 4),
            ("a in x", 5),
            ("a in (x", 7),
            ("a b", 2),
            ("a=b;c", 3),
            ("!", 1),
        ] {
            assert_eq!(Selector::parse(text).unwrap_err().position, position, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn display_parses_back(keys in proptest::collection::vec(("[a-z]{1,5}", proptest::collection::btree_set("[a-z0-9]{1,3}", 1..4), 0..4), 1..6)) {
            let terms = keys.into_iter().map(|(key, values, op)| {
                let values: Vec<String> = values.into_iter().collect();
                match op { 0 => Term::In { key, values }, 1 => Term::NotIn { key, values }, 2 => Term::Exists { key }, _ => Term::Absent { key } }
            }).collect();
            let selector = Selector { terms };
            prop_assert_eq!(Selector::parse(&selector.to_string()).unwrap(), selector);
        }

        #[test]
        fn no_input_panics(text in ".{0,60}") {
            let _ = Selector::parse(&text);
        }
    }
}
