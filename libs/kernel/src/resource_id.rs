//! Resource ids: `node/worker-3`. Exactly one slash; the prefix is the type's id prefix.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest accepted id, in bytes.
pub const MAX_RESOURCE_ID: usize = 253;

/// A resource id, unique in an organization.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId {
    text: String,
    slash: usize,
}

crate::string_schema!(
    ResourceId,
    "A resource id: PREFIX/NAME.",
    "^[a-z][a-z0-9-]*/[a-z0-9]([a-z0-9._-]*[a-z0-9])?$",
    MAX_RESOURCE_ID,
    "node/worker-3"
);

/// The text is not a resource id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a resource id: PREFIX/NAME with lower-case letters, digits, '.', '_' and '-', at most {MAX_RESOURCE_ID} bytes (like node/worker-3)"
)]
pub struct ResourceIdError {
    text: String,
}

impl ResourceId {
    /// The whole id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The part before the slash: the id prefix of the resource's type.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.text[..self.slash]
    }

    /// The part after the slash.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.text[self.slash + 1..]
    }
}

fn is_edge(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

impl FromStr for ResourceId {
    type Err = ResourceIdError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || ResourceIdError {
            text: text.chars().take(80).collect(),
        };
        let (prefix, name) = text.split_once('/').ok_or_else(refuse)?;
        let prefix_good =
            prefix.starts_with(|c: char| c.is_ascii_lowercase()) && prefix.bytes().all(|b| is_edge(b) || b == b'-');
        let bytes = name.as_bytes();
        let name_good = bytes.first().copied().is_some_and(is_edge)
            && bytes.last().copied().is_some_and(is_edge)
            && bytes.iter().all(|&b| is_edge(b) || matches!(b, b'.' | b'_' | b'-'));
        if prefix_good && name_good && text.len() <= MAX_RESOURCE_ID {
            Ok(Self {
                text: text.to_owned(),
                slash: prefix.len(),
            })
        } else {
            Err(refuse())
        }
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl Serialize for ResourceId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for ResourceId {
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
    fn one_slash_and_plain_names() {
        let id: ResourceId = "node/worker-3".parse().unwrap();
        assert_eq!((id.prefix(), id.name()), ("node", "worker-3"));
        for good in ["cluster/prod-k8s", "rack/r1", "node/a.b_c", "n/1"] {
            assert!(good.parse::<ResourceId>().is_ok(), "{good:?}");
        }
        for bad in [
            "", "node", "node/", "/x", "a/b/c", "Node/x", "node/X", "node/-x", "node/x-", "node/..", "no de/x",
        ] {
            assert!(bad.parse::<ResourceId>().is_err(), "{bad:?}");
        }
    }
}
