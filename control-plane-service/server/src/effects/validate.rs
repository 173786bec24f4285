//! Asking the catalog, while the claims are held, whether the bound resources are still what was planned
//! with; the connection data of jobs is pinned from this answer. Setting finalizers along with it keeps
//! them from being deleted while the run lasts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use control_plane_operation::{BindingFound, BindingToValidate, Input, ValidatedBinding};
use control_plane_plan::{Plan, SlotBinding};
use kernel::Sha256Digest;
use kernel::id::ResourceUid;
use resource_catalog_api::{ValidatedResource, ValidationItem, ValidationRequest, ValidationResult};

use super::answer::{in_words, refusal};
use super::{PerformError, Performer, Report};
use crate::engine::Engine;
use crate::points;
use crate::store::effect::OwnedEffect;

/// Resources in one request.
const TOGETHER: usize = 1_000;

impl Performer {
    pub(super) async fn validate(
        &self,
        engine: &Arc<Engine>,
        owned: &OwnedEffect,
        resources: &[BindingToValidate],
    ) -> Result<Report, PerformError> {
        let plan = engine.plan_of(owned.organization, owned.operation).await?;
        let catalog = self.catalog(owned.organization);
        let mut results: HashMap<ResourceUid, ValidationResult> = HashMap::new();
        for chunk in distinct(resources).chunks(TOGETHER) {
            let request = request(owned, chunk);
            points::hit("control_plane.validate.before_call");
            let answer = catalog.validate(&request).await;
            points::hit("control_plane.validate.after_call");
            match answer {
                Ok(answer) => results.extend(chunk.iter().map(|asked| asked.uid).zip(answer.resources)),
                Err(error) => {
                    let problem = refusal("resource-catalog", error)?;
                    return Ok(Report::Tell(Input::CatalogUnreachable {
                        request: owned.effect.id,
                        detail: in_words(&problem),
                    }));
                }
            }
        }
        let plan = plan.document().plan();
        let found = resources.iter().map(|asked| ValidatedBinding {
            slot: asked.slot.clone(),
            uid: asked.uid,
            found: found(plan, asked, results.get(&asked.uid)),
        });
        Ok(Report::Tell(Input::BindingsValidated {
            request: owned.effect.id,
            bindings: found.collect(),
        }))
    }
}

/// A resource that is bound to two slots is asked about once.
fn distinct(resources: &[BindingToValidate]) -> Vec<&BindingToValidate> {
    let mut seen = HashSet::new();
    resources.iter().filter(|resource| seen.insert(resource.uid)).collect()
}

fn request(owned: &OwnedEffect, resources: &[&BindingToValidate]) -> ValidationRequest {
    let items = resources.iter().map(|resource| ValidationItem {
        uid: Some(resource.uid),
        ..ValidationItem::exists(resource.resource_id.clone())
    });
    ValidationRequest {
        operation_id: Some(owned.operation),
        set_finalizers: true,
        resources: items.collect(),
    }
}

fn found(plan: &Plan, asked: &BindingToValidate, result: Option<&ValidationResult>) -> BindingFound {
    let current = result.and_then(|result| result.current.as_ref());
    let slot = plan.slots.iter().find(|slot| slot.slot == asked.slot);
    match (current, slot) {
        (Some(current), Some(slot)) if current.uid == asked.uid => BindingFound::Present {
            pin: pin_for(slot, current),
            version: current.version,
            differing: Vec::new(),
            connection: Some(current.pin_inputs.connection.clone()),
        },
        _ => BindingFound::Gone,
    }
}

/// The pin of a resource as planning made it for this slot: over the capabilities that the slot read.
pub fn pin_for(slot: &SlotBinding, current: &ValidatedResource) -> Sha256Digest {
    let read = current.pin_inputs.clone().restricted_to(&slot.pin_capabilities);
    read.digest()
}
