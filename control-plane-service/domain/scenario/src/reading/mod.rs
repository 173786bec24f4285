//! From the marked tree to a [`Template`]: one file for each part of a template.
//!
//! Names are collected before anything that refers to them is read, so that every reference is checked
//! where it stands, with its line.

mod action;
mod job;
mod node;
mod order;
mod parameter;
mod requirement;
mod scope;

use std::collections::{BTreeMap, BTreeSet};

use control_plane_plan::RetryPolicy;

pub(crate) use job::DEFAULT_RETRY;
pub(crate) use parameter::compile as compile_schema;

use crate::bundle::Bundle;
use crate::fault::{FaultCode, Faults, suggestion};
use crate::reader::{Fields, Placed, text};
use crate::template::{LaneSpec, NodeSpec, Parameter, Provided, Requirement, Template};
use crate::yaml::{Content, Key, Node};

/// What a pack gives its templates.
pub(crate) struct Around<'p> {
    pub(crate) bundle: &'p Bundle,
    /// Path of the content directory with a slash at its end, when the pack has one.
    pub(crate) content: Option<String>,
    pub(crate) retry_policies: &'p BTreeMap<String, RetryPolicy>,
}

/// Everything that a node may refer to.
pub(crate) struct Known<'p> {
    pub(crate) around: &'p Around<'p>,
    pub(crate) parameters: BTreeMap<String, Parameter>,
    pub(crate) requirements: BTreeMap<String, Requirement>,
    pub(crate) lanes: BTreeMap<String, LaneSpec>,
    pub(crate) node_ids: BTreeSet<String>,
    pub(crate) declared: Declared,
}

/// Names that are declared, though what they stand for may have faults of its own: referring to them is
/// no further fault.
#[derive(Default)]
pub(crate) struct Declared {
    pub(crate) parameters: BTreeSet<String>,
    pub(crate) slots: BTreeSet<String>,
    pub(crate) lanes: BTreeSet<String>,
}

fn names_of(entries: &[(Key, Node)]) -> BTreeSet<String> {
    entries.iter().map(|(key, _)| key.name.clone()).collect()
}

/// Reads one template file. `None` when faults were found that leave nothing usable.
pub(crate) fn template(root: &Node, around: &Around<'_>, faults: &Faults) -> Option<Template> {
    let mut fields = Fields::open(root, "template", faults)?;
    let name = fields.required_text("name");
    if let Some(name) = &name {
        check_name(name, "name", faults);
    }
    let title = fields.prose("title");
    let description = fields.prose("description");
    let (parameters, requirements, lanes) = (
        fields.map("parameters"),
        fields.map("requirements"),
        fields.map("lanes"),
    );
    let declared = Declared {
        parameters: names_of(parameters),
        slots: names_of(requirements),
        lanes: names_of(lanes),
    };
    let mut known = Known {
        around,
        parameters: parameter::read_all(parameters, faults),
        requirements: BTreeMap::new(),
        lanes: BTreeMap::new(),
        node_ids: BTreeSet::new(),
        declared,
    };
    known.requirements = requirement::read_all(requirements, &known, faults);
    known.lanes = lanes
        .iter()
        .filter_map(|(key, node)| Some((key.name.clone(), node::lane(key, node, &known, faults)?)))
        .collect();
    let node_list = match fields.required("nodes") {
        Some(node) => crate::reader::list(node, "nodes", faults),
        None => &[],
    };
    known.node_ids = node::ids(node_list, faults);
    let mut references = scope::NodeReferences::default();
    let nodes: Vec<NodeSpec> = node_list
        .iter()
        .filter_map(|node| node::read(node, &known, &mut references, faults))
        .collect();
    let provides = read_provides(&mut fields, &known, &nodes);
    let risk = fields.parsed_list("risk");
    fields.finish();
    let nodes = order::sorted(nodes, node_list, &references, faults)?;
    Some(Template {
        name: name?.value,
        title,
        description,
        parameters: known.parameters,
        requirements: known.requirements,
        lanes: known.lanes,
        nodes,
        provides,
        risk,
        retry_policies: around.retry_policies.clone(),
    })
}

/// Names of templates, slots, lanes, nodes: they end up in ids, URLs and file names.
pub(crate) fn is_name(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_'))
}

pub(crate) fn check_name(name: &Placed<String>, what: &str, faults: &Faults) -> bool {
    let good = is_name(&name.value);
    if !good {
        faults.add(
            name.at,
            FaultCode::InvalidValue,
            format!("`{}` cannot be a {what}", name.value),
            "use lower-case letters, digits, `-` and `_`, a letter first, at most 63",
        );
    }
    good
}

fn read_provides(fields: &mut Fields<'_, '_>, known: &Known<'_>, nodes: &[NodeSpec]) -> Vec<Provided> {
    let faults = fields.faults();
    let mut provides = Vec::new();
    for node in fields.list("provides") {
        let Some(mut entry) = Fields::open(node, "provided capability", faults) else {
            continue;
        };
        let slot = entry.required_text("slot");
        entry.required("capability");
        let capability = entry.parsed("capability");
        entry.finish();
        let (Some(slot), Some(capability)) = (slot, capability) else {
            continue;
        };
        if known.slot(&slot, faults).is_none() {
            continue;
        }
        if !nodes.iter().any(|node| node.adds(&slot.value, &capability)) {
            faults.add(
                node.at,
                FaultCode::Unprovided,
                format!("no node adds `{capability}` to resources of `{}`", slot.value),
                "add a resource_update node that adds it, or leave the promise out",
            );
        }
        provides.push(Provided {
            slot: slot.value,
            capability,
        });
    }
    provides
}

impl Known<'_> {
    /// The requirement of a slot that is referred to.
    pub(crate) fn slot(&self, name: &Placed<String>, faults: &Faults) -> Option<&Requirement> {
        if !self.declared.slots.contains(&name.value) {
            faults.add(
                name.at,
                FaultCode::UnknownSlot,
                format!("there is no slot `{}`", name.value),
                suggestion(&name.value, self.declared.slots.iter().map(String::as_str)),
            );
        }
        self.requirements.get(&name.value)
    }

    /// Whether there is a node of that id.
    pub(crate) fn has_node(&self, name: &Placed<String>, faults: &Faults) -> bool {
        let found = self.node_ids.contains(&name.value);
        if !found {
            faults.add(
                name.at,
                FaultCode::UnknownNode,
                format!("there is no node `{}`", name.value),
                suggestion(&name.value, self.node_ids.iter().map(String::as_str)),
            );
        }
        found
    }
}

/// A list of texts with their places.
pub(crate) fn texts(nodes: &[Node], what: &str, faults: &Faults) -> Vec<Placed<String>> {
    nodes.iter().filter_map(|node| text(node, what, faults)).collect()
}

/// One text, or a list of them.
pub(crate) fn one_or_more(node: &Node, what: &str, faults: &Faults) -> Vec<Placed<String>> {
    match &node.content {
        Content::List(items) => texts(items, what, faults),
        _ => text(node, what, faults).into_iter().collect(),
    }
}
