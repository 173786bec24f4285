//! What a key may vouch for: the limit on the claims it can make true.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::claims::Claims;
use crate::role::Role;

/// A right to vouch. On the wire: `issuer`, `service:<name>` or `runners`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vouch {
    /// Any subject in any role: the deployment's own issuer.
    Issuer,
    /// The subject `service:<name>` in the role `service`, and nothing else.
    Service(String),
    /// Subjects `runner:<id>` in the role `runner`, and nothing else.
    Runners,
}

/// The text is no right to vouch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is nothing a key can vouch for: issuer, service:<name> or runners")]
pub struct VouchError(String);

impl Vouch {
    /// Whether a key with this right makes `claims` true.
    #[must_use]
    pub fn covers(&self, claims: &Claims) -> bool {
        let only = |role: Role| !claims.roles.is_empty() && claims.roles.iter().all(|have| *have == role);
        match self {
            Self::Issuer => true,
            Self::Service(name) => claims.sub.strip_prefix("service:") == Some(name.as_str()) && only(Role::Service),
            Self::Runners => claims.sub.starts_with("runner:") && only(Role::Runner),
        }
    }
}

impl fmt::Display for Vouch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Issuer => f.write_str("issuer"),
            Self::Service(name) => write!(f, "service:{name}"),
            Self::Runners => f.write_str("runners"),
        }
    }
}

impl FromStr for Vouch {
    type Err = VouchError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fault = || VouchError(text.chars().take(60).collect());
        match text {
            "issuer" => Ok(Self::Issuer),
            "runners" => Ok(Self::Runners),
            _ => {
                let name = text.strip_prefix("service:").ok_or_else(fault)?;
                let good = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
                good.then(|| Self::Service(name.to_owned())).ok_or_else(fault)
            }
        }
    }
}

impl Serialize for Vouch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Vouch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}
