//! Selecting resources: the conditions of a list and of a watch, decided in one place.

use std::collections::BTreeMap;

use contracts::{HealthStatus, LifecycleStatus};
use kernel::{DottedName, Selector, SoftwareVersion, VersionRequirement};

use crate::resource::Resource;

/// Conditions on a resource; all must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceFilter {
    /// This type, or one derived from it.
    pub resource_type: Option<DottedName>,
    pub environment: Option<String>,
    pub selector: Selector,
    pub capability: Option<CapabilityFilter>,
    pub health: Option<HealthStatus>,
    pub lifecycle: Option<LifecycleStatus>,
}

/// A capability, and the range that its attribute `version` must lie in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityFilter {
    pub name: DottedName,
    pub version: Option<VersionRequirement>,
}

/// What selection reads of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    pub resource_type: DottedName,
    pub ancestors: Vec<DottedName>,
    pub environment: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub lifecycle: LifecycleStatus,
    pub health: HealthStatus,
    /// Parents included; the version that each provider states.
    pub capabilities: BTreeMap<DottedName, Vec<Option<SoftwareVersion>>>,
}

impl Membership {
    /// How `resource` is selected.
    #[must_use]
    pub fn of(resource: &Resource) -> Self {
        Self {
            resource_type: resource.resource_type.clone(),
            ancestors: resource.ancestors.clone(),
            environment: resource.environment.clone(),
            labels: resource.labels.clone(),
            lifecycle: resource.lifecycle,
            health: resource.health.status,
            capabilities: resource.effective_capabilities(),
        }
    }
}

impl CapabilityFilter {
    /// Whether one of the stated versions will do. A provider that states none does not satisfy a range.
    #[must_use]
    pub fn accepts(&self, versions: &[Option<SoftwareVersion>]) -> bool {
        match &self.version {
            None => true,
            Some(range) => versions.iter().flatten().any(|v| range.accepts(v)),
        }
    }
}

impl ResourceFilter {
    /// Whether a resource with this membership is selected.
    #[must_use]
    pub fn matches(&self, member: &Membership) -> bool {
        self.resource_type
            .as_ref()
            .is_none_or(|t| member.resource_type == *t || member.ancestors.contains(t))
            && self
                .environment
                .as_ref()
                .is_none_or(|e| member.environment.as_ref() == Some(e))
            && self.health.is_none_or(|h| member.health == h)
            && self.lifecycle.is_none_or(|l| member.lifecycle == l)
            && self
                .capability
                .as_ref()
                .is_none_or(|wanted| member.capabilities.get(&wanted.name).is_some_and(|v| wanted.accepts(v)))
            && self.selector.matches(&member.labels)
    }
}
