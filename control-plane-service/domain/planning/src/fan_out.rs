//! What a fan-out runs over: the resources of a slot or the elements of a list.

use std::collections::BTreeMap;

use control_plane_plan::Item;
use control_plane_scenario::dynamic::{Deferred, as_text};
use control_plane_scenario::expression::Scope;
use control_plane_scenario::template::Over;
use serde_json::{Value, json};

use crate::{Bound, Candidate, PlanningError};

/// Most elements of a fan-out.
pub const MAX_ITEMS: usize = 10_000;
/// Longest key of an element, in bytes.
const MAX_KEY: usize = 512;

/// One element: as the plan keeps it and as expressions see it.
pub(crate) struct Element<'c> {
    pub(crate) item: Item,
    pub(crate) seen: Value,
    /// The resource, when it is one.
    pub(crate) candidate: Option<&'c Candidate>,
}

pub(crate) fn elements<'c>(
    over: &Over,
    bindings: &BTreeMap<String, Bound<'c>>,
    scope: &Scope<'_>,
    node: &str,
) -> Result<Vec<Element<'c>>, PlanningError> {
    match over {
        Over::Slot(slot) => {
            let bound = bindings
                .get(slot)
                .ok_or_else(|| PlanningError::in_node(node, format!("slot `{slot}` is not bound")))?;
            let elements = bound.candidates.iter().enumerate();
            Ok(elements
                .map(|(index, candidate)| of_resource(index, candidate, bound))
                .collect())
        }
        Over::List(list) => {
            let value = list
                .resolve(scope, &mut Deferred::new())
                .map_err(|error| PlanningError::in_node(node, error.to_string()))?;
            of_list(value, node)
        }
    }
}

fn of_resource<'c>(index: usize, candidate: &'c Candidate, bound: &Bound<'c>) -> Element<'c> {
    let index = u32::try_from(index).unwrap_or(u32::MAX);
    let key = candidate.resource_id.to_string();
    let mut seen = candidate.to_json(&bound.reads);
    seen["key"] = json!(key);
    seen["index"] = json!(index);
    seen["value"] = Value::Null;
    Element {
        item: Item {
            index,
            key,
            uid: Some(candidate.uid),
            value: None,
        },
        seen,
        candidate: Some(candidate),
    }
}

fn of_list<'c>(value: Value, node: &str) -> Result<Vec<Element<'c>>, PlanningError> {
    let Value::Array(values) = value else {
        return Err(PlanningError::in_node(
            node,
            format!("it fans out over {value}, which is no list"),
        ));
    };
    if values.len() > MAX_ITEMS {
        return Err(PlanningError::TooLarge {
            limit: MAX_ITEMS,
            what: "items in one fan-out",
        });
    }
    let mut seen_keys = std::collections::BTreeSet::new();
    let mut elements = Vec::with_capacity(values.len());
    for (index, value) in values.into_iter().enumerate() {
        let key = as_text(&value);
        if key.is_empty() || key.len() > MAX_KEY {
            let problem = format!("element {index} of its list makes no key: 1 to {MAX_KEY} bytes are allowed");
            return Err(PlanningError::in_node(node, problem));
        }
        if !seen_keys.insert(key.clone()) {
            let problem = format!("its list holds {key:?} twice; items are told apart by their text");
            return Err(PlanningError::in_node(node, problem));
        }
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        elements.push(Element {
            seen: json!({"key": key, "index": index, "value": value}),
            item: Item {
                index,
                key,
                uid: None,
                value: Some(value),
            },
            candidate: None,
        });
    }
    Ok(elements)
}
