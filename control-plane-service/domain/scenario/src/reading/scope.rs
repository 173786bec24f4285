//! What an expression may read where it stands.

use crate::dynamic::{Dynamic, NODES};
use crate::expression::Expression;
use crate::fault::{FaultCode, Faults, Position, suggestion};
use crate::template::{ForEach, Over};

use super::Known;

/// The fields of `item` that are still known when a node is dispatched; `key` of a resource is its id.
const ITEM_LATER: [&str; 3] = ["key", "index", "value"];
/// The fields of `item`, a bound resource, while planning.
const ITEM_RESOURCE: [&str; 12] = [
    "id",
    "uid",
    "name",
    "key",
    "index",
    "resource_type",
    "environment",
    "labels",
    "lifecycle",
    "connection",
    "capabilities",
    "value",
];

/// Where an expression stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The variables of this place besides `parameters` and `environment`.
    pub(crate) variables: &'a [&'static str],
    pub(crate) for_each: Option<&'a ForEach>,
    /// There is an item, and what it is cannot be told because its fan-out has faults.
    pub(crate) unknown_item: bool,
}

impl Place<'_> {
    /// Inside a requirement's own conditions.
    pub(crate) const MATCHING: Place<'static> = Place {
        variables: &["resource"],
        for_each: None,
        unknown_item: false,
    };
    /// Inside a capability constraint.
    pub(crate) const ATTRIBUTES: Place<'static> = Place {
        variables: &["attributes"],
        for_each: None,
        unknown_item: false,
    };
    /// Where only what was asked for is known.
    pub(crate) const REQUEST: Place<'static> = Place {
        variables: &[],
        for_each: None,
        unknown_item: false,
    };
    /// What a fan-out runs over.
    pub(crate) const LIST: Place<'static> = Place {
        variables: &["slots"],
        for_each: None,
        unknown_item: false,
    };
}

/// Which node's results are read by which node, and where that is written.
#[derive(Debug, Default)]
pub(crate) struct NodeReferences(pub(crate) Vec<(String, String, Position)>);

/// Checks everything that `expression` reads; returns the nodes whose results it reads.
pub(crate) fn check(
    expression: &Expression,
    at: Position,
    place: Place<'_>,
    known: &Known<'_>,
    faults: &Faults,
) -> Vec<String> {
    let waits = expression.reads(NODES);
    let mut nodes = Vec::new();
    for path in expression.paths() {
        let (variable, field) = (path.variable.as_str(), path.field.as_deref());
        let in_scope = matches!(variable, "parameters" | "environment")
            || place.variables.contains(&variable)
            || (variable == "item" && (place.for_each.is_some() || place.unknown_item));
        if !in_scope {
            let mut there = vec!["parameters", "environment"];
            there.extend(place.variables);
            there.extend(place.for_each.map(|_| "item"));
            let remedy = suggestion(variable, there);
            let message = format!("`{}` reads unknown variable `{variable}`", expression.source());
            faults.add(at, FaultCode::BadExpression, message, remedy);
            continue;
        }
        match (variable, field) {
            ("parameters", Some(name)) if !known.declared.parameters.contains(name) => faults.add(
                at,
                FaultCode::UnknownParameter,
                format!("there is no parameter `{name}`"),
                suggestion(name, known.declared.parameters.iter().map(String::as_str)),
            ),
            ("slots", Some(name)) if !known.declared.slots.contains(name) => faults.add(
                at,
                FaultCode::UnknownSlot,
                format!("there is no slot `{name}`"),
                suggestion(name, known.declared.slots.iter().map(String::as_str)),
            ),
            (NODES, Some(name)) if !known.node_ids.contains(name) => faults.add(
                at,
                FaultCode::UnknownNode,
                format!("there is no node `{name}`"),
                suggestion(name, known.node_ids.iter().map(String::as_str)),
            ),
            (NODES, Some(name)) => nodes.push(name.to_owned()),
            (NODES, None) => faults.add(
                at,
                FaultCode::BadExpression,
                format!("`{}` reads `nodes` as a whole", expression.source()),
                "name the node: `nodes.ID` or `nodes['ID']`",
            ),
            ("slots" | "environment", _) if waits => faults.add(
                at,
                FaultCode::BadExpression,
                format!("`{}` reads both `{variable}` and `nodes`", expression.source()),
                "an expression over `nodes` is evaluated at dispatch; put the other part into a `${}` of its own",
            ),
            ("item", Some(name)) if !place.unknown_item => check_item(name, waits, at, place, expression, faults),
            _ => {}
        }
    }
    nodes
}

fn check_item(name: &str, waits: bool, at: Position, place: Place<'_>, expression: &Expression, faults: &Faults) {
    let over_slot = place.for_each.is_some_and(|f| matches!(f.over, Over::Slot(_)));
    let fields: &[&str] = match (waits, over_slot) {
        (true, _) => &ITEM_LATER,
        (false, true) => &ITEM_RESOURCE,
        (false, false) => &["key", "index", "value"],
    };
    if !fields.contains(&name) {
        let when = if waits { " when the node is dispatched" } else { "" };
        faults.add(
            at,
            FaultCode::BadExpression,
            format!("`{}`: `item` has no `{name}`{when}", expression.source()),
            suggestion(name, fields.iter().copied()),
        );
    }
}

/// Checks every expression of a value.
pub(crate) fn check_dynamic(
    value: &Dynamic,
    at: Position,
    place: Place<'_>,
    known: &Known<'_>,
    faults: &Faults,
) -> Vec<String> {
    value
        .expressions()
        .into_iter()
        .flat_map(|expression| check(expression, at, place, known, faults))
        .collect()
}
