//! What else may feel an operation, by topology.

use std::collections::{BTreeMap, BTreeSet};

use control_plane_plan::{BlastRadius, ClaimMode, Plan};
use kernel::{DottedName, ResourceId};

/// A resource that depends on one that the operation changes, within the hops that were searched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependent {
    pub resource_id: ResourceId,
    pub resource_type: DottedName,
}

/// The blast radius of `plan`; `dependents` were found by following edges backwards from what it changes.
#[must_use]
pub fn blast_radius(plan: &Plan, dependents: &[Dependent], partial: bool) -> BlastRadius {
    let mut types: BTreeMap<&ResourceId, &DottedName> = BTreeMap::new();
    let reads: BTreeSet<_> = plan
        .claims
        .iter()
        .filter(|c| c.mode == ClaimMode::Read)
        .map(|c| c.uid)
        .collect();
    for resource in plan.slots.iter().flat_map(|slot| &slot.resources) {
        if !reads.contains(&resource.uid) {
            types.insert(&resource.resource_id, &resource.resource_type);
        }
    }
    let direct: Vec<ResourceId> = types.keys().map(|id| (*id).clone()).collect();
    let mut further = BTreeSet::new();
    for dependent in dependents {
        if !types.contains_key(&dependent.resource_id) {
            further.insert(dependent);
        }
    }
    let mut counts: BTreeMap<DottedName, u64> = BTreeMap::new();
    for name in types.values().copied().chain(further.iter().map(|d| &d.resource_type)) {
        *counts.entry(name.clone()).or_default() += 1;
    }
    BlastRadius {
        direct,
        dependents: further.into_iter().map(|d| d.resource_id.clone()).collect(),
        resource_types: counts.into_iter().collect(),
        partial,
    }
}
