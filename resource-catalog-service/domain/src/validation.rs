//! "Is it still as the plan saw it?", for one resource at a command boundary.

use contracts::LifecycleStatus;
use kernel::id::ResourceUid;

use crate::filter::CapabilityFilter;
use crate::resource::Resource;

/// What a plan expects of a resource; what is absent is not checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expectation {
    pub uid: Option<ResourceUid>,
    pub version: Option<i64>,
    pub lifecycle_in: Vec<LifecycleStatus>,
    pub capabilities: Vec<CapabilityFilter>,
}

/// One expectation that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmet {
    NotFound,
    OtherIncarnation {
        current: ResourceUid,
    },
    VersionMoved {
        expected: i64,
        current: i64,
    },
    LifecycleNotAllowed {
        current: LifecycleStatus,
    },
    CapabilityMissing(CapabilityFilter),
    /// Provided, but in no version of the range; the stated versions.
    CapabilityVersionMismatch(CapabilityFilter, Vec<String>),
}

/// Everything that does not hold of `resource` (None: there is none).
#[must_use]
pub fn unmet(expected: &Expectation, resource: Option<&Resource>) -> Vec<Unmet> {
    let Some(resource) = resource else {
        return vec![Unmet::NotFound];
    };
    let mut found = Vec::new();
    if expected.uid.is_some_and(|uid| uid != resource.uid) {
        found.push(Unmet::OtherIncarnation { current: resource.uid });
    }
    if let Some(version) = expected.version
        && version != resource.version
    {
        found.push(Unmet::VersionMoved {
            expected: version,
            current: resource.version,
        });
    }
    if !expected.lifecycle_in.is_empty() && !expected.lifecycle_in.contains(&resource.lifecycle) {
        found.push(Unmet::LifecycleNotAllowed {
            current: resource.lifecycle,
        });
    }
    let provided = resource.effective_capabilities();
    for wanted in &expected.capabilities {
        match provided.get(&wanted.name) {
            None => found.push(Unmet::CapabilityMissing(wanted.clone())),
            Some(versions) if !wanted.accepts(versions) => {
                let stated = versions.iter().flatten().map(ToString::to_string).collect();
                found.push(Unmet::CapabilityVersionMismatch(wanted.clone(), stated));
            }
            Some(_) => {}
        }
    }
    found
}
