//! Applying a resource update command: what an operation made true of a resource.
//!
//! Invariants: the command's expectation (incarnation, version) is checked before anything else; a capability is
//! added only with evidence that passed for it; a refused command changes nothing and names every fault.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use contracts::{ProvidedCapabilities, ResourceUpdateCommand};
use kernel::id::ResourceUid;
use serde_json::{Map, Value};

use crate::capability::Capabilities;
use crate::change::{Change, patch_places};
use crate::fault::{self, Fault, FaultCode, escape};
use crate::limits;
use crate::observe::{evidence_faults, evidence_for, unknown, unproven};
use crate::ratchet;
use crate::resource::{Health, Provenance, Provided, Resource};
use crate::types::Types;

/// Why a command was not applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    Conflict(Conflict),
    /// Every fault, by place in the command.
    Rejected(Vec<Fault>),
}

/// The command's expectation did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub expected_version: i64,
    pub current_version: i64,
    pub current_uid: ResourceUid,
    pub other_incarnation: bool,
}

/// Applies `command` to `resource`.
///
/// # Errors
/// [`Refusal::Conflict`] when the expectation does not hold, [`Refusal::Rejected`] with every fault otherwise.
pub fn apply(
    resource: &Resource,
    types: &Types,
    capabilities: &Capabilities,
    command: &ResourceUpdateCommand,
    now: DateTime<Utc>,
) -> Result<Change, Refusal> {
    let other_incarnation = command.uid.is_some_and(|uid| uid != resource.uid);
    if other_incarnation || command.expected_version != resource.version {
        return Err(Refusal::Conflict(Conflict {
            expected_version: command.expected_version,
            current_version: resource.version,
            current_uid: resource.uid,
            other_incarnation,
        }));
    }
    let mut next = resource.successor(now);
    let mut faults = evidence_faults(&command.evidence, &resource.id, "/evidence");
    faults.extend(apply_status(&mut next, resource, types, command, now));
    if let Some(patch) = &command.changes.observed_state_patch {
        faults.extend(apply_patch(&mut next, resource, types, patch));
    }
    if let Some(provided) = &command.changes.provided_capabilities {
        faults.extend(apply_capabilities(&mut next, capabilities, command, provided, now));
    }
    faults.extend(limits::size_faults(&next, "/changes/observed_state_patch"));
    fault::none(faults).map_err(Refusal::Rejected)?;
    Ok(Change::between(resource, next))
}

/// The places of the resource that `command` touches.
#[must_use]
pub fn touched(command: &ResourceUpdateCommand) -> Vec<String> {
    let changes = &command.changes;
    let mut places = Vec::new();
    if changes.lifecycle_status.is_some() {
        places.push("/lifecycle_status".to_owned());
    }
    if changes.health_status.is_some() {
        places.push("/health".to_owned());
    }
    if let Some(Value::Object(patch)) = &changes.observed_state_patch {
        places.extend(patch_places(patch, "/observed_state"));
    }
    if let Some(provided) = &changes.provided_capabilities {
        let names = provided.add.iter().chain(&provided.remove);
        places.extend(names.map(|name| format!("/provided_capabilities/{name}")));
    }
    places
}

fn apply_status(
    next: &mut Resource,
    current: &Resource,
    types: &Types,
    command: &ResourceUpdateCommand,
    now: DateTime<Utc>,
) -> Option<Fault> {
    if let Some(status) = command.changes.health_status {
        next.health = Health {
            status,
            reasons: if status == current.health.status {
                current.health.reasons.clone()
            } else {
                Vec::new()
            },
            observed_at: Some(now),
        };
    }
    let to = command.changes.lifecycle_status?;
    next.lifecycle = to;
    match types.get(&current.resource_type) {
        Some(known) => known
            .transitions
            .fault(current.lifecycle, to, "/changes/lifecycle_status"),
        None => Some(unknown_type(current)),
    }
}

fn apply_patch(next: &mut Resource, current: &Resource, types: &Types, patch: &Value) -> Vec<Fault> {
    let pointer = "/changes/observed_state_patch";
    if !patch.is_object() {
        let detail = "a merge patch of a state is an object";
        return vec![Fault::new(pointer, FaultCode::NotAnObject, detail)];
    }
    let mut faults = limits::json_faults(patch, pointer);
    let before = Value::Object(current.observed.clone());
    let mut after = before.clone();
    json_patch::merge(&mut after, patch);
    match types.get(&current.resource_type) {
        Some(known) => faults.extend(ratchet::faults(&known.observed, Some(&before), &after, pointer)),
        None => faults.push(unknown_type(current)),
    }
    if let Value::Object(merged) = after {
        faults.extend(limits::json_faults(&Value::Object(merged.clone()), pointer));
        next.observed = merged;
    }
    faults
}

fn apply_capabilities(
    next: &mut Resource,
    capabilities: &Capabilities,
    command: &ResourceUpdateCommand,
    provided: &ProvidedCapabilities,
    now: DateTime<Utc>,
) -> Vec<Fault> {
    let pointer = "/changes/provided_capabilities";
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, name) in provided.remove.iter().enumerate() {
        if !seen.insert(name) {
            let place = format!("{pointer}/remove/{index}");
            faults.push(Fault::new(
                place,
                FaultCode::Duplicate,
                format!("{name} is named twice"),
            ));
        }
        next.provided.remove(name);
    }
    for (index, name) in provided.add.iter().enumerate() {
        let place = format!("{pointer}/add/{index}");
        if !seen.insert(name) {
            let detail = format!("{name} is named twice, or added and removed");
            faults.push(Fault::new(&place, FaultCode::Contradiction, detail));
        }
        let Some(definition) = capabilities.get(name) else {
            faults.push(unknown(name, &place));
            continue;
        };
        faults.extend(unproven(name, &command.evidence, &place));
        let attributes = match provided.attributes.get(name.as_str()) {
            None => Map::new(),
            Some(Value::Object(attributes)) => attributes.clone(),
            Some(_) => {
                let place = format!("{pointer}/attributes/{name}");
                faults.push(Fault::new(place, FaultCode::NotAnObject, "attributes are an object"));
                continue;
            }
        };
        faults.extend(definition.attribute_faults(&attributes, &format!("{pointer}/attributes/{name}")));
        next.provided.insert(
            name.clone(),
            Provided {
                implies: definition.ancestors.clone(),
                attributes,
                evidence: evidence_for(name, &command.evidence),
                provenance: Provenance::Operation {
                    operation: command.operation_id,
                    command: command.command_id,
                },
                provided_at: now,
            },
        );
    }
    for key in provided.attributes.keys() {
        if !provided.add.iter().any(|name| name.as_str() == key) {
            let place = format!("{pointer}/attributes/{}", escape(key));
            let detail = "attributes of a capability that is not added";
            faults.push(Fault::new(place, FaultCode::Contradiction, detail));
        }
    }
    faults
}

fn unknown_type(resource: &Resource) -> Fault {
    let detail = format!("there is no resource type {}", resource.resource_type);
    Fault::new("/resource_id", FaultCode::UnknownType, detail)
}
