//! Dotted names of resource types and capabilities: `compute.node`, `kubernetes.cluster.ready`.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest accepted name, in bytes.
pub const MAX_NAME: usize = 200;

/// A lower-case dotted name: segments of `[a-z0-9_-]`, starting with a letter, joined by dots.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DottedName(String);

crate::string_schema!(
    DottedName,
    "A lower-case dotted name.",
    "^[a-z][a-z0-9_-]*([.][a-z0-9][a-z0-9_-]*)*$",
    MAX_NAME,
    "compute.node"
);

/// The text is not a dotted name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a dotted name: lower-case letters, digits, '_' and '-', segments joined by '.', at most {MAX_NAME} bytes (like compute.node)"
)]
pub struct NameError {
    text: String,
}

impl DottedName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for DottedName {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let segment = |s: &str| {
            s.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
                && s.bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
        };
        let good = text.len() <= MAX_NAME
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.split('.').all(segment);
        if good {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError {
                text: text.chars().take(80).collect(),
            })
        }
    }
}

impl fmt::Display for DottedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for DottedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Serialize for DottedName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for DottedName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lower_case_segments() {
        for good in [
            "compute.node",
            "a",
            "web.http",
            "kubernetes.worker_node.joined",
            "os.linux",
            "x-y.2z",
        ] {
            assert_eq!(good.parse::<DottedName>().unwrap().as_str(), good);
        }
        for bad in ["", ".", "a.", ".a", "A", "a..b", "a b", "1a", "ä", "_a"] {
            assert!(bad.parse::<DottedName>().is_err(), "{bad:?}");
        }
    }
}
