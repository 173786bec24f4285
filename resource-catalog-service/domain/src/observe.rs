//! An observer's word on capabilities, outside any operation.

use chrono::{DateTime, Utc};
use contracts::{EvidenceRef, EvidenceResult};
use kernel::{DottedName, ResourceId};
use serde_json::{Map, Value};

use crate::capability::Capabilities;
use crate::fault::{self, Fault, FaultCode};
use crate::limits::{self, MAX_EVIDENCE};
use crate::resource::{Provenance, Provided, Resource};

/// The next version of `current` when `subject` saw that it provides `capability`; None when that, with the same
/// attributes and the same evidence, is known.
///
/// # Errors
/// Every fault: unknown capability, no passed evidence for it, attributes that its definition refuses.
pub fn provide(
    current: &Resource,
    capability: &DottedName,
    attributes: Map<String, Value>,
    evidence: Vec<EvidenceRef>,
    subject: &str,
    capabilities: &Capabilities,
    now: DateTime<Utc>,
) -> Result<Option<Resource>, Vec<Fault>> {
    let Some(definition) = capabilities.get(capability) else {
        return Err(vec![unknown(capability, "")]);
    };
    let mut faults = definition.attribute_faults(&attributes, "/attributes");
    faults.extend(evidence_faults(&evidence, &current.id, "/evidence"));
    faults.extend(unproven(capability, &evidence, "/evidence"));
    let provided = Provided {
        implies: definition.ancestors.clone(),
        attributes,
        evidence: evidence_for(capability, &evidence),
        provenance: Provenance::Observer {
            subject: subject.to_owned(),
        },
        provided_at: now,
    };
    let mut next = current.successor(now);
    if let Some(held) = current.provided.get(capability) {
        let as_before = Provided {
            provided_at: held.provided_at,
            ..provided.clone()
        };
        if as_before == *held && faults.is_empty() {
            return Ok(None);
        }
    }
    next.provided.insert(capability.clone(), provided);
    faults.extend(limits::size_faults(&next, ""));
    fault::none(faults)?;
    Ok(Some(next))
}

/// The next version of `current` without `capability`; None when it does not provide it.
#[must_use]
pub fn withdraw(current: &Resource, capability: &DottedName, now: DateTime<Utc>) -> Option<Resource> {
    current.provided.contains_key(capability).then(|| {
        let mut next = current.successor(now);
        next.provided.remove(capability);
        next
    })
}

pub(crate) fn unknown(capability: &DottedName, pointer: &str) -> Fault {
    let detail = format!("there is no capability {capability}");
    Fault::new(pointer, FaultCode::UnknownCapability, detail)
}

/// The fault of adding `capability` without evidence that passed for it.
pub(crate) fn unproven(capability: &DottedName, evidence: &[EvidenceRef], pointer: &str) -> Option<Fault> {
    let proven = evidence
        .iter()
        .any(|e| e.capability == *capability && e.result == EvidenceResult::Passed);
    (!proven).then(|| {
        let detail = format!("no evidence passed for {capability}; a capability is added only with some");
        Fault::new(pointer, FaultCode::EvidenceMissing, detail)
    })
}

/// The evidence that is about `capability`.
pub(crate) fn evidence_for(capability: &DottedName, evidence: &[EvidenceRef]) -> Vec<EvidenceRef> {
    evidence
        .iter()
        .filter(|e| e.capability == *capability)
        .cloned()
        .collect()
}

/// Faults of evidence as such: too much of it, about another resource, or named without end.
pub(crate) fn evidence_faults(evidence: &[EvidenceRef], resource: &ResourceId, pointer: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    if evidence.len() > MAX_EVIDENCE {
        let detail = format!("{} pieces of evidence; at most {MAX_EVIDENCE}", evidence.len());
        faults.push(Fault::new(pointer, FaultCode::TooMany, detail));
    }
    for (index, piece) in evidence.iter().enumerate() {
        if piece.resource_id.as_ref().is_some_and(|r| r != resource) {
            faults.push(Fault::new(
                format!("{pointer}/{index}/resource_id"),
                FaultCode::Contradiction,
                format!("this evidence is about another resource than {resource}"),
            ));
        }
        for (text, field, most) in [
            (Some(&piece.source_ref), "source_ref", 2_000),
            (piece.name.as_ref(), "name", 200),
        ] {
            let Some(text) = text else { continue };
            let place = format!("{pointer}/{index}/{field}");
            if text.len() > most {
                faults.push(Fault::new(
                    place,
                    FaultCode::TooLarge,
                    format!("{} bytes; at most {most}", text.len()),
                ));
            } else if text.contains('\0') {
                faults.push(Fault::new(place, FaultCode::NoCanonicalForm, "contains NUL"));
            }
        }
    }
    faults
}
