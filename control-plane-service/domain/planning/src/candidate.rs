//! What planning is told of the world.

use std::collections::BTreeMap;

use contracts::{HealthStatus, LifecycleStatus};
use kernel::id::ResourceUid;
use kernel::{DottedName, ResourceId};
use serde_json::{Map, Value, json};

/// A capability that a resource provides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capability {
    pub capability: DottedName,
    /// The capabilities that are provided with it.
    pub implies: Vec<DottedName>,
    pub attributes: Map<String, Value>,
}

impl Capability {
    /// Whether this provides `wanted`, itself or as a child of it.
    #[must_use]
    pub fn provides(&self, wanted: &DottedName) -> bool {
        self.capability == *wanted || self.implies.contains(wanted)
    }
}

/// An edge that leaves a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    pub edge_type: String,
    pub target: ResourceId,
}

/// A resource as matching and jobs read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub resource_id: ResourceId,
    pub uid: ResourceUid,
    pub resource_type: DottedName,
    /// The types that its type derives from.
    pub ancestors: Vec<DottedName>,
    pub environment: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub lifecycle: LifecycleStatus,
    pub health: HealthStatus,
    pub capabilities: Vec<Capability>,
    pub edges: Vec<Edge>,
    pub desired_generation: i64,
    /// Empty: it is not known how to reach it.
    pub connection: Map<String, Value>,
}

/// A resource that others are in, as far as topology asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub resource_type: DottedName,
    pub ancestors: Vec<DottedName>,
    pub edges: Vec<Edge>,
}

/// Everything that a plan is made from besides the template and the parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// In any order. A candidate is considered for every slot whose type it has.
    pub candidates: Vec<Candidate>,
    /// The targets of edges, as far as they are known.
    pub places: BTreeMap<ResourceId, Place>,
    /// Slot → constraint → how many resources of the slot's type the store left out of `candidates`
    /// because they do not meet that constraint. Only counted, not explained one by one.
    pub left_out: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Candidate {
    /// Whether it is of `wanted` or a type derived from it.
    #[must_use]
    pub fn is_a(&self, wanted: &DottedName) -> bool {
        self.resource_type == *wanted || self.ancestors.contains(wanted)
    }

    /// The capability that provides `wanted`: the one of that very name, else the first child by name.
    #[must_use]
    pub fn provider_of(&self, wanted: &DottedName) -> Option<&Capability> {
        self.capabilities
            .iter()
            .filter(|held| held.provides(wanted))
            .min_by_key(|held| (held.capability != *wanted, &held.capability))
    }

    /// What expressions see as `resource`, an element of `slots` and, with more, `item`. Of the
    /// capabilities only those that the slot asks for: the pin covers no others.
    pub(crate) fn to_json(&self, capabilities: &[DottedName]) -> Value {
        let capabilities: Map<String, Value> = capabilities
            .iter()
            .filter_map(|name| {
                let held = self.provider_of(name)?;
                Some((name.to_string(), Value::Object(held.attributes.clone())))
            })
            .collect();
        json!({
            "id": self.resource_id,
            "uid": self.uid,
            "name": self.resource_id.name(),
            "resource_type": self.resource_type,
            "environment": self.environment,
            "labels": self.labels,
            "lifecycle": self.lifecycle,
            "connection": self.connection,
            "capabilities": capabilities,
        })
    }
}
