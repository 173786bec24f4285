//! Gates and resource updates.

use std::collections::BTreeMap;

use contracts::{HealthStatus, LifecycleStatus};
use control_plane_plan::GateClaims;
use kernel::DottedName;

use super::node::Here;
use super::scope::{NodeReferences, Place, check_dynamic};
use super::texts;
use crate::fault::{FaultCode, suggestion};
use crate::reader::{Fields, dynamic, parsed};
use crate::template::{Count, GateTemplate, UpdateTemplate};
use crate::yaml::Node;

const ROLES: [&str; 4] = ["viewer", "operator", "approver", "admin"];
const YEAR: u32 = 366 * 24 * 3600;

pub(super) fn gate(node: &Node, here: &Here<'_>) -> Option<GateTemplate> {
    let faults = here.faults;
    let mut fields = Fields::open(node, "gate", faults)?;
    let role = fields.text("role");
    if let Some(role) = &role
        && !ROLES.contains(&role.value.as_str())
    {
        faults.add(
            role.at,
            FaultCode::InvalidValue,
            format!("there is no role `{}`", role.value),
            suggestion(&role.value, ROLES),
        );
    }
    let requester_excluded = fields.boolean("requester_excluded").unwrap_or(true);
    let expires_after_seconds = fields.integer("expires_after_seconds", 1, YEAR);
    fields.choice("on_expiry", &[("deny", ())]);
    let choices = [("hold", GateClaims::Hold), ("release", GateClaims::Release)];
    let claims = fields.choice("claims", &choices);
    let message = fields.dynamic("message").map(|found| {
        let place = Place {
            variables: &["slots"],
            for_each: None,
            unknown_item: false,
        };
        check_dynamic(&found.value, found.at, place, here.known, faults);
        found.value
    });
    fields.finish();
    Some(GateTemplate {
        role: role.map_or_else(|| "approver".to_owned(), |role| role.value),
        requester_excluded,
        expires_after_seconds,
        claims,
        message,
    })
}

pub(super) fn update(node: &Node, here: &Here<'_>, references: &mut NodeReferences) -> Option<UpdateTemplate> {
    let faults = here.faults;
    let mut fields = Fields::open(node, "update", faults)?;
    let slot = updated_slot(&mut fields, here);
    let lifecycle_status = fields.choice("lifecycle_status", &LifecycleStatus::ALL.map(|s| (s.as_str(), s)));
    let health_status = fields.choice("health_status", &HealthStatus::ALL.map(|s| (s.as_str(), s)));
    let observed_state_patch = fields.dynamic("observed_state_patch").map(|found| {
        for read in check_dynamic(&found.value, found.at, here.place(), here.known, faults) {
            references.0.push((here.id.to_owned(), read, found.at));
        }
        found.value
    });
    let (add, remove, attributes) = match fields.node("capabilities") {
        Some(node) => capabilities(node, here, references).unwrap_or_default(),
        None => <(Vec<_>, Vec<_>, BTreeMap<_, _>)>::default(),
    };
    let mut evidence_from = Vec::new();
    for named in texts(fields.list("evidence_from"), "evidence_from", faults) {
        if here.known.has_node(&named, faults) {
            references.0.push((here.id.to_owned(), named.value.clone(), named.at));
            evidence_from.push(named.value);
        }
    }
    if !add.is_empty() && evidence_from.is_empty() {
        faults.add(
            node.at,
            FaultCode::Unprovided,
            "a capability is added without evidence for it",
            "name the node that checks it in `evidence_from`",
        );
    }
    fields.finish();
    Some(UpdateTemplate {
        slot,
        lifecycle_status,
        health_status,
        observed_state_patch,
        add,
        remove,
        attributes,
        evidence_from,
    })
}

fn updated_slot(fields: &mut Fields<'_, '_>, here: &Here<'_>) -> Option<String> {
    let faults = here.faults;
    let Some(slot) = fields.text("slot") else {
        if here.slot_of_item().is_none() && !here.faulty_for_each {
            faults.add(
                fields.at,
                FaultCode::MissingField,
                "it is not said which resource is updated",
                "add `for_each` over a slot, or `slot` with a slot that binds one resource",
            );
        }
        return None;
    };
    let requirement = here.known.slot(&slot, faults)?;
    if requirement.count != (Count { min: 1, max: Some(1) }) {
        faults.add(
            slot.at,
            FaultCode::InvalidValue,
            format!("the slot `{}` may bind several resources", slot.value),
            "use `for_each` over the slot",
        );
    }
    Some(slot.value)
}

type CapabilityChange = (
    Vec<DottedName>,
    Vec<DottedName>,
    BTreeMap<String, crate::dynamic::Dynamic>,
);

fn capabilities(node: &Node, here: &Here<'_>, references: &mut NodeReferences) -> Option<CapabilityChange> {
    let faults = here.faults;
    let mut fields = Fields::open(node, "capability change", faults)?;
    let add: Vec<DottedName> = fields.parsed_list("add");
    let remove = fields.parsed_list("remove");
    let mut attributes = BTreeMap::new();
    for (key, value) in fields.map("attributes") {
        if !add.iter().any(|capability| capability.as_str() == key.name) {
            faults.add(
                key.at,
                FaultCode::InvalidValue,
                format!("`{}` is not among the added capabilities", key.name),
                suggestion(&key.name, add.iter().map(DottedName::as_str)),
            );
        }
        let value_read = dynamic(value, faults);
        for read in check_dynamic(&value_read, value.at, here.place(), here.known, faults) {
            references.0.push((here.id.to_owned(), read, value.at));
        }
        attributes.insert(key.name.clone(), value_read);
    }
    fields.finish();
    Some((add, remove, attributes))
}

/// A list of dotted names, each with its fault.
pub(super) fn names(nodes: &[Node], what: &'static str, here: &Here<'_>) -> Vec<DottedName> {
    nodes
        .iter()
        .filter_map(|node| parsed(node, what, here.faults).map(|placed| placed.value))
        .collect()
}
