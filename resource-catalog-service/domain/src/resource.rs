//! A resource as the rules see it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use contracts::{EvidenceRef, HealthStatus, LifecycleStatus};
use kernel::id::{CommandId, OperationId, OrganizationId, ResourceUid};
use kernel::{DottedName, ResourceId, SoftwareVersion};
use serde_json::{Map, Value};

use crate::edge::Edge;

/// The full state of one resource at one version.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    pub id: ResourceId,
    pub uid: ResourceUid,
    pub organization: OrganizationId,
    pub resource_type: DottedName,
    /// Nearest first.
    pub ancestors: Vec<DottedName>,
    pub environment: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub lifecycle: LifecycleStatus,
    pub health: Health,
    pub desired: Map<String, Value>,
    pub observed: Map<String, Value>,
    pub connection: Map<String, Value>,
    pub version: i64,
    pub desired_generation: i64,
    pub provided: BTreeMap<DottedName, Provided>,
    pub edges: BTreeSet<Edge>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// How a resource is, as last observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    pub status: HealthStatus,
    pub reasons: Vec<String>,
    pub observed_at: Option<DateTime<Utc>>,
}

impl Health {
    /// Nothing was ever observed.
    #[must_use]
    pub const fn unobserved() -> Self {
        Self {
            status: HealthStatus::Unknown,
            reasons: Vec::new(),
            observed_at: None,
        }
    }
}

/// A provided capability; its name is its key.
#[derive(Debug, Clone, PartialEq)]
pub struct Provided {
    /// The parents that come with it, nearest first.
    pub implies: Vec<DottedName>,
    pub attributes: Map<String, Value>,
    pub evidence: Vec<EvidenceRef>,
    pub provenance: Provenance,
    pub provided_at: DateTime<Utc>,
}

impl Provided {
    /// The attribute `version`, read as a software version.
    #[must_use]
    pub fn version(&self) -> Option<SoftwareVersion> {
        self.attributes.get("version")?.as_str()?.parse().ok()
    }
}

/// Who made a capability known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provenance {
    Operation { operation: OperationId, command: CommandId },
    Observer { subject: String },
}

impl Resource {
    /// The same resource one version later; time never runs backwards between versions.
    #[must_use]
    pub fn successor(&self, now: DateTime<Utc>) -> Self {
        let mut next = self.clone();
        next.version += 1;
        next.updated_at = now.max(self.updated_at);
        next
    }

    /// Every capability that this provides, parents included, with the version each provider states.
    #[must_use]
    pub fn effective_capabilities(&self) -> BTreeMap<DottedName, Vec<Option<SoftwareVersion>>> {
        let mut all: BTreeMap<DottedName, Vec<Option<SoftwareVersion>>> = BTreeMap::new();
        for (name, provided) in &self.provided {
            for capability in core::iter::once(name).chain(&provided.implies) {
                all.entry(capability.clone()).or_default().push(provided.version());
            }
        }
        all
    }
}
