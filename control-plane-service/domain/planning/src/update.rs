//! Resource updates of a plan.

use std::collections::BTreeMap;

use contracts::{Changes, ProvidedCapabilities};
use control_plane_plan::ResourceUpdate;
use control_plane_scenario::dynamic::{Deferred, Dynamic};
use control_plane_scenario::template::UpdateTemplate;
use serde_json::{Map, Value};

use crate::job::Site;
use crate::{Candidate, PlanningError};

/// The update; `evidence_from` already names nodes of the plan.
pub(crate) fn update(
    template: &UpdateTemplate,
    site: &Site<'_, '_>,
    evidence_from: Vec<String>,
    skipped: bool,
) -> Result<ResourceUpdate, PlanningError> {
    let candidate = updated(template, site)?;
    let mut deferred = BTreeMap::new();
    let mut changes = Changes {
        lifecycle_status: template.lifecycle_status,
        health_status: template.health_status,
        observed_state_patch: None,
        provided_capabilities: None,
    };
    if !skipped && let Some(patch) = &template.observed_state_patch {
        changes.observed_state_patch = Some(resolved(patch, "/observed_state_patch", site, &mut deferred)?);
    }
    if !(template.add.is_empty() && template.remove.is_empty()) {
        let mut attributes = Map::new();
        for (capability, dynamic) in template.attributes.iter().filter(|_| !skipped) {
            let pointer = format!("/provided_capabilities/attributes/{capability}");
            attributes.insert(capability.clone(), resolved(dynamic, &pointer, site, &mut deferred)?);
        }
        changes.provided_capabilities = Some(ProvidedCapabilities {
            add: template.add.clone(),
            remove: template.remove.clone(),
            attributes,
        });
    }
    Ok(ResourceUpdate {
        uid: candidate.uid,
        resource_id: candidate.resource_id.clone(),
        changes,
        deferred,
        evidence_from,
    })
}

fn updated<'c>(template: &UpdateTemplate, site: &Site<'_, 'c>) -> Result<&'c Candidate, PlanningError> {
    let found = match &template.slot {
        Some(slot) => site
            .bindings
            .get(slot)
            .and_then(|bound| bound.candidates.first().copied()),
        None => site.element.and_then(|element| element.candidate),
    };
    found.ok_or_else(|| PlanningError::in_node(site.node, "there is no resource to update"))
}

fn resolved(
    dynamic: &Dynamic,
    pointer: &str,
    site: &Site<'_, '_>,
    deferred: &mut Deferred,
) -> Result<Value, PlanningError> {
    let mut below = Deferred::new();
    let value = dynamic
        .resolve(site.scope, &mut below)
        .map_err(|error| site.failed(&error))?;
    deferred.extend(
        below
            .into_iter()
            .map(|(inner, source)| (format!("{pointer}{inner}"), source)),
    );
    Ok(value)
}
