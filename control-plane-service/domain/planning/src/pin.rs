//! The binding pin, as the catalog makes it: SHA-256 over the canonical form of what matching and jobs
//! read. Field names and order of capabilities are the catalog's; a test of the server holds the two
//! together.

use std::collections::BTreeMap;

use contracts::LifecycleStatus;
use kernel::{CanonicalError, DottedName, Sha256Digest, canonical_digest};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::Candidate;

#[derive(Serialize)]
struct PinInputs<'a> {
    resource_type: &'a DottedName,
    lifecycle_status: LifecycleStatus,
    labels: &'a BTreeMap<String, String>,
    capabilities: Vec<PinnedCapability<'a>>,
    desired_generation: i64,
    connection: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct PinnedCapability<'a> {
    capability: &'a DottedName,
    implies: &'a [DottedName],
    attributes: &'a Map<String, Value>,
}

/// The pin of `candidate`, over those of its capabilities that provide one of `wanted`.
///
/// # Errors
/// When a value in it has no canonical form.
pub fn pin_of(candidate: &Candidate, wanted: &[DottedName]) -> Result<Sha256Digest, CanonicalError> {
    let mut capabilities: Vec<PinnedCapability<'_>> = candidate
        .capabilities
        .iter()
        .filter(|held| wanted.iter().any(|name| held.provides(name)))
        .map(|held| PinnedCapability {
            capability: &held.capability,
            implies: &held.implies,
            attributes: &held.attributes,
        })
        .collect();
    capabilities.sort_by_key(|held| held.capability);
    canonical_digest(&PinInputs {
        resource_type: &candidate.resource_type,
        lifecycle_status: candidate.lifecycle,
        labels: &candidate.labels,
        capabilities,
        desired_generation: candidate.desired_generation,
        connection: &candidate.connection,
    })
}
