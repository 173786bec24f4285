//! Where resources are: the places that are reached by following edges.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use control_plane_scenario::template::Topology;
use kernel::ResourceId;

use crate::candidate::{Candidate, Edge, Place};

/// Longest way to a place, in edges.
const MAX_HOPS: usize = 8;

/// The nearest places of the topology's type, sorted.
pub(crate) fn places_of(
    candidate: &Candidate,
    topology: &Topology,
    places: &BTreeMap<ResourceId, Place>,
) -> Vec<ResourceId> {
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut open: VecDeque<(usize, &[Edge])> = VecDeque::from([(0, candidate.edges.as_slice())]);
    let mut found_at = usize::MAX;
    while let Some((hops, edges)) = open.pop_front() {
        if hops >= MAX_HOPS.min(found_at) {
            break;
        }
        for edge in edges.iter().filter(|edge| topology.edges.contains(&edge.edge_type)) {
            let Some(place) = places.get(&edge.target) else {
                continue;
            };
            if place.resource_type == topology.place_type || place.ancestors.contains(&topology.place_type) {
                found.insert(edge.target.clone());
                found_at = hops + 1;
            } else if seen.insert(&edge.target) {
                open.push_back((hops + 1, &place.edges));
            }
        }
    }
    found.into_iter().collect()
}
