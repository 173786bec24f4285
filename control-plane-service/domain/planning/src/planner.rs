//! The plan as a whole.

use std::collections::BTreeMap;

use control_plane_plan::{
    BoundResource, CapabilityChange, Claim, ClaimMode, Lane, LaneItem, NodeKind, Plan, PlanDocument, PlanError,
    PlanNode, ScenarioPin, SlotBinding, SlotExplanation,
};
use control_plane_scenario::Template;
use control_plane_scenario::expression::Scope;
use kernel::id::ResourceUid;
use serde_json::{Map, Value};

use crate::expand::{Expander, lane_of};
use crate::matching::{Bound, match_slots};
use crate::{Candidate, PlanningError, Snapshot, graph, pin_of};

/// Version of the plan's shape.
const FORMAT: u32 = 1;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    pub scenario: ScenarioPin,
    pub template: &'a Template,
    pub environment: &'a str,
    /// As given; defaults are filled in here.
    pub parameters: &'a Map<String, Value>,
}

/// A plan and how its slots were bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    pub document: PlanDocument,
    pub slots: Vec<SlotExplanation>,
}

/// Plans, or explains why not.
///
/// # Errors
/// [`PlanningError`].
pub fn plan(request: &Request<'_>, snapshot: &Snapshot) -> Result<Planned, PlanningError> {
    let parameters = request
        .template
        .complete(request.parameters)
        .map_err(PlanningError::Parameters)?;
    let base = base_scope(&parameters, request.environment);
    let matched = match_slots(request.template, request.environment, snapshot, &base)?;
    if !matched.is_complete() {
        return Err(PlanningError::Unsatisfiable(matched.explanations));
    }
    let slots = slot_bindings(request.template, &matched.bound)?;
    let document = build(
        request.template,
        request.scenario.clone(),
        request.environment,
        parameters,
        slots,
        &matched.bound,
        &base,
    )?;
    Ok(Planned {
        document,
        slots: matched.explanations,
    })
}

/// The same plan with other parameters: bindings and pins stay, everything that follows from the
/// parameters is made anew. `changed` holds the parameters to set, the others keep their values.
///
/// # Errors
/// [`PlanningError`]; `BoundResourceGone` when a bound incarnation is not among `candidates`.
pub fn replan(
    previous: &Plan,
    template: &Template,
    changed: &Map<String, Value>,
    candidates: &[Candidate],
) -> Result<PlanDocument, PlanningError> {
    let mut given = previous.parameters.clone();
    given.extend(changed.iter().map(|(name, value)| (name.clone(), value.clone())));
    let parameters = template.complete(&given).map_err(PlanningError::Parameters)?;
    let by_uid: BTreeMap<ResourceUid, &Candidate> = candidates.iter().map(|c| (c.uid, c)).collect();
    let mut bound = BTreeMap::new();
    for slot in &previous.slots {
        let mut bound_here = Vec::with_capacity(slot.resources.len());
        for resource in &slot.resources {
            let candidate = by_uid
                .get(&resource.uid)
                .ok_or_else(|| PlanningError::BoundResourceGone {
                    resource_id: resource.resource_id.clone(),
                })?;
            bound_here.push(*candidate);
        }
        bound.insert(
            slot.slot.clone(),
            Bound {
                reads: slot.pin_capabilities.clone(),
                candidates: bound_here,
            },
        );
    }
    let base = base_scope(&parameters, &previous.environment);
    build(
        template,
        previous.scenario.clone(),
        &previous.environment,
        parameters,
        previous.slots.clone(),
        &bound,
        &base,
    )
}

pub(crate) fn base_scope(parameters: &Map<String, Value>, environment: &str) -> Scope<'static> {
    let parameters = Value::Object(parameters.clone());
    let environment = Value::from(environment);
    Scope::new([("parameters", &parameters), ("environment", &environment)])
}

fn slot_bindings(template: &Template, bound: &BTreeMap<String, Bound<'_>>) -> Result<Vec<SlotBinding>, PlanningError> {
    let mut slots = Vec::with_capacity(bound.len());
    for (name, requirement) in &template.requirements {
        let Some(bound) = bound.get(name) else { continue };
        let mut resources = Vec::with_capacity(bound.candidates.len());
        for candidate in &bound.candidates {
            resources.push(BoundResource {
                resource_id: candidate.resource_id.clone(),
                uid: candidate.uid,
                resource_type: candidate.resource_type.clone(),
                pin: pin_of(candidate, &bound.reads)?,
            });
        }
        slots.push(SlotBinding {
            slot: name.clone(),
            resource_type: requirement.resource_type.clone(),
            claim: requirement.claim,
            pin_capabilities: bound.reads.clone(),
            resources,
        });
    }
    Ok(slots)
}

fn build(
    template: &Template,
    scenario: ScenarioPin,
    environment: &str,
    parameters: Map<String, Value>,
    slots: Vec<SlotBinding>,
    bound: &BTreeMap<String, Bound<'_>>,
    base: &Scope<'_>,
) -> Result<PlanDocument, PlanningError> {
    let seen: Map<String, Value> = bound
        .iter()
        .map(|(slot, bound)| {
            let resources = bound.candidates.iter().map(|c| c.to_json(&bound.reads));
            (slot.clone(), resources.collect())
        })
        .collect();
    let scope = base.with("slots", &Value::Object(seen));
    let nodes = graph::ordered(Expander::new(template, bound, &scope).expand()?)?;
    let plan = Plan {
        format: FORMAT,
        scenario,
        environment: environment.to_owned(),
        parameters,
        claims: claims(&slots),
        slots,
        lanes: lanes(template, &nodes),
        capability_changes: capability_changes(&nodes),
        destructive: nodes
            .iter()
            .filter(|node| node.destructive && !node.skipped)
            .map(|node| node.id.clone())
            .collect(),
        nodes,
    };
    PlanDocument::seal(plan).map_err(|error| match error {
        PlanError::Canonical(error) => PlanningError::Canonical(error),
        other => PlanningError::in_node("", other.to_string()),
    })
}

/// One claim a resource, in the strongest mode that any slot asks for, in the order of uids.
fn claims(slots: &[SlotBinding]) -> Vec<Claim> {
    let mut claims: BTreeMap<ResourceUid, Claim> = BTreeMap::new();
    for slot in slots {
        for resource in &slot.resources {
            let claim = claims.entry(resource.uid).or_insert_with(|| Claim {
                uid: resource.uid,
                resource_id: resource.resource_id.clone(),
                mode: ClaimMode::Read,
            });
            claim.mode = claim.mode.max(slot.claim);
        }
    }
    claims.into_values().collect()
}

/// The lanes with their items in the order of the fan-out and each item's nodes in plan order.
fn lanes(template: &Template, nodes: &[PlanNode]) -> Vec<Lane> {
    let mut lanes: BTreeMap<String, (u32, Option<u32>)> = BTreeMap::new();
    for spec in &template.nodes {
        let (Some(id), Some(for_each)) = (lane_of(spec), &spec.for_each) else {
            continue;
        };
        let limits = match for_each.lane.as_ref().and_then(|name| template.lanes.get(name)) {
            Some(lane) => (lane.max_failures, Some(lane.max_parallel)),
            None => (for_each.max_failures.unwrap_or(0), for_each.max_parallel),
        };
        lanes.insert(id, limits);
    }
    let mut items: BTreeMap<&str, BTreeMap<(u32, &str), Vec<String>>> = BTreeMap::new();
    for node in nodes {
        if let (Some(lane), Some(item)) = (&node.lane, &node.item) {
            let items = items.entry(lane).or_default();
            items.entry((item.index, &item.key)).or_default().push(node.id.clone());
        }
    }
    lanes
        .into_iter()
        .map(|(id, (max_failures, max_parallel))| {
            let items: Vec<LaneItem> = items
                .remove(id.as_str())
                .unwrap_or_default()
                .into_iter()
                .map(|((_, key), nodes)| LaneItem {
                    key: key.to_owned(),
                    nodes,
                })
                .collect();
            let all = u32::try_from(items.len()).unwrap_or(u32::MAX).max(1);
            Lane {
                id,
                max_parallel: max_parallel.unwrap_or(all),
                max_failures,
                items,
            }
        })
        .collect()
}

fn capability_changes(nodes: &[PlanNode]) -> Vec<CapabilityChange> {
    let mut changes = Vec::new();
    for node in nodes.iter().filter(|node| !node.skipped) {
        let NodeKind::ResourceUpdate(update) = &node.action else {
            continue;
        };
        if let Some(provided) = &update.changes.provided_capabilities {
            changes.push(CapabilityChange {
                resource_id: update.resource_id.clone(),
                node: node.id.clone(),
                add: provided.add.clone(),
                remove: provided.remove.clone(),
            });
        }
    }
    changes
}
