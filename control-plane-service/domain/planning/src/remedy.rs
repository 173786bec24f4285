//! What would have to change for a slot to be bound, as data and as a sentence.

use core::fmt;

use contracts::{HealthStatus, LifecycleStatus};
use kernel::{DottedName, ResourceId};

/// One change to one resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    Environment(String),
    Lifecycle(LifecycleStatus),
    Health(HealthStatus),
    Connection,
    SetLabel {
        key: String,
        value: String,
    },
    DropLabel(String),
    Provide {
        capability: DottedName,
        version: Option<String>,
    },
    Withdraw(DottedName),
    /// Put it into a place of that type, where none of the others is.
    OwnPlace {
        place_type: DottedName,
        edge: String,
    },
    /// Put it into this place.
    Place {
        place: ResourceId,
        edge: String,
    },
    Edge {
        edge: String,
        target: ResourceId,
    },
    /// Nothing mechanical: make the expression true.
    Condition(String),
}

/// The smallest change found that satisfies a slot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remedy {
    /// By resource, each with all its changes.
    pub changes: Vec<(ResourceId, Vec<Change>)>,
    /// So many further resources have to come.
    pub additional: u32,
    /// What a further resource has to be.
    pub additional_must: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment(environment) => write!(f, "move it to environment {environment}"),
            Self::Lifecycle(status) => write!(f, "bring it to lifecycle {}", status.as_str()),
            Self::Health(status) => write!(f, "make it {}", status.as_str()),
            Self::Connection => f.write_str("give it connection data"),
            Self::SetLabel { key, value } => write!(f, "set its label {key}={value}"),
            Self::DropLabel(key) => write!(f, "remove its label {key}"),
            Self::Provide {
                capability,
                version: Some(version),
            } => write!(f, "provide {capability} {version} on it"),
            Self::Provide { capability, .. } => write!(f, "provide {capability} on it"),
            Self::Withdraw(capability) => write!(f, "withdraw {capability} from it"),
            Self::OwnPlace { place_type, edge } => {
                write!(f, "put it into a {place_type} of its own (edge {edge})")
            }
            Self::Place { place, edge } => write!(f, "put it into {place} (edge {edge})"),
            Self::Edge { edge, target } => write!(f, "add its edge {edge} to {target}"),
            Self::Condition(expression) => write!(f, "make `{expression}` true of it"),
        }
    }
}

/// `a; b; c`
pub(crate) fn sentence(changes: &[Change]) -> String {
    changes.iter().map(Change::to_string).collect::<Vec<_>>().join("; ")
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = self
            .changes
            .iter()
            .map(|(resource, changes)| format!("{resource}: {}", sentence(changes)))
            .collect();
        if self.additional > 0 {
            parts.push(format!("register {} more {}", self.additional, self.additional_must));
        }
        f.write_str(&parts.join(", and "))
    }
}
