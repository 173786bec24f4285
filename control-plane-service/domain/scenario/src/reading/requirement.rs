//! Requirements: the slots of a template.

use std::collections::{BTreeMap, BTreeSet};

use contracts::{HealthStatus, LifecycleStatus};
use control_plane_plan::ClaimMode;
use kernel::Selector;

use super::scope::{Place, check, check_dynamic};
use super::{Known, check_name, one_or_more};
use crate::dynamic::Dynamic;
use crate::expression::Expression;
use crate::fault::{FaultCode, Faults, Position, suggestion};
use crate::reader::{Fields, Placed, choice, integer, wrong_type};
use crate::template::{CapabilityConstraint, Count, MustNot, Preference, Relation, Requirement, Topology};
use crate::yaml::{Content, Key, Node};

/// The edge types of the catalog.
const EDGES: [&str; 6] = [
    "hosted_on",
    "member_of",
    "part_of",
    "connects_to",
    "depends_on",
    "backs_up",
];
const MAX_COUNT: u32 = 10_000;

pub(super) fn read_all(entries: &[(Key, Node)], known: &Known<'_>, faults: &Faults) -> BTreeMap<String, Requirement> {
    let names: BTreeSet<&str> = entries.iter().map(|(key, _)| key.name.as_str()).collect();
    let mut requirements = BTreeMap::new();
    for (key, node) in entries {
        let name = Placed {
            at: key.at,
            value: key.name.clone(),
        };
        check_name(&name, "slot", faults);
        if let Some(requirement) = read(&name.value, node, &names, known, faults) {
            requirements.insert(name.value, requirement);
        }
    }
    check_relations(&requirements, entries, faults);
    requirements
}

fn read(slot: &str, node: &Node, slots: &BTreeSet<&str>, known: &Known<'_>, faults: &Faults) -> Option<Requirement> {
    let mut fields = Fields::open(node, "requirement", faults)?;
    let description = fields.prose("description");
    fields.required("resource_type");
    let resource_type = fields.parsed("resource_type");
    let environment = fields.dynamic("environment").map(|found| {
        check_dynamic(&found.value, found.at, Place::REQUEST, known, faults);
        found.value
    });
    let count = fields
        .node("count")
        .map_or(Some(Count { min: 1, max: Some(1) }), |node| read_count(node, faults));
    let capabilities = fields
        .list("capabilities")
        .iter()
        .filter_map(|n| capability(n, known, faults))
        .collect();
    let selector = fields
        .dynamic("selector")
        .map(|found| check_selector(found, known, faults));
    let lifecycle = words(&mut fields, "lifecycle", &LifecycleStatus::ALL.map(|s| (s.as_str(), s)));
    let health = words(&mut fields, "health", &HealthStatus::ALL.map(|s| (s.as_str(), s)));
    let connection = fields.boolean("connection").unwrap_or(false);
    let distinct = fields.node("distinct").and_then(|node| topology(node, faults));
    let same = fields.node("same").and_then(|node| topology(node, faults));
    if let (Some(_), Some(_)) = (&distinct, &same) {
        faults.add(
            fields.at,
            FaultCode::InvalidValue,
            "`distinct` and `same` exclude each other",
            "keep one of them",
        );
    }
    let relation = fields
        .node("relation")
        .and_then(|node| relation(node, slot, slots, faults));
    let condition = condition(&mut fields, known);
    let must_not = fields.node("must_not").and_then(|node| must_not(node, known, faults));
    let prefer = fields
        .list("prefer")
        .iter()
        .filter_map(|n| preference(n, known, faults))
        .collect();
    let claims = [
        ("exclusive", ClaimMode::Exclusive),
        ("shared", ClaimMode::Shared),
        ("read", ClaimMode::Read),
    ];
    let claim = fields.choice("claim", &claims).unwrap_or(ClaimMode::Exclusive);
    fields.finish();
    Some(Requirement {
        slot: slot.to_owned(),
        description,
        resource_type: resource_type?,
        environment,
        count: count?,
        capabilities,
        selector,
        lifecycle: if lifecycle.is_empty() {
            vec![LifecycleStatus::Running]
        } else {
            lifecycle
        },
        health,
        connection,
        distinct,
        same,
        relation,
        condition,
        must_not: must_not.unwrap_or_default(),
        prefer,
        claim,
    })
}

/// `all`, a number, or `{min, max}`.
fn read_count(node: &Node, faults: &Faults) -> Option<Count> {
    match &node.content {
        Content::Text(word) if word == "all" => Some(Count { min: 1, max: None }),
        Content::Integer(_) => {
            let exactly = integer(node, "count", 1, MAX_COUNT, faults)?;
            Some(Count {
                min: exactly,
                max: Some(exactly),
            })
        }
        Content::Map(_) => {
            let mut fields = Fields::open(node, "count", faults)?;
            let min = fields.integer("min", 0, MAX_COUNT);
            let max = fields.integer("max", 1, MAX_COUNT);
            fields.finish();
            let min = min.unwrap_or(1);
            if max.is_some_and(|max| max < min) {
                faults.add(
                    node.at,
                    FaultCode::InvalidValue,
                    "`max` is less than `min`",
                    "make `max` at least `min`",
                );
            }
            Some(Count { min, max })
        }
        _ => {
            wrong_type(
                node,
                "count",
                "a number, `all` or a mapping with `min` and `max`",
                faults,
            );
            None
        }
    }
}

fn capability(node: &Node, known: &Known<'_>, faults: &Faults) -> Option<CapabilityConstraint> {
    if let Content::Text(_) = node.content {
        return Some(CapabilityConstraint {
            capability: crate::reader::parsed(node, "capabilities", faults)?.value,
            version: None,
            condition: None,
        });
    }
    let mut fields = Fields::open(node, "capability constraint", faults)?;
    fields.required("name");
    let capability = fields.parsed("name");
    let version = fields.parsed("version");
    let condition = fields.expression("where").map(|found| {
        check(&found.value, found.at, Place::ATTRIBUTES, known, faults);
        found.value
    });
    fields.finish();
    Some(CapabilityConstraint {
        capability: capability?,
        version,
        condition,
    })
}

fn check_selector(found: Placed<Dynamic>, known: &Known<'_>, faults: &Faults) -> Dynamic {
    check_dynamic(&found.value, found.at, Place::REQUEST, known, faults);
    if let Dynamic::Fixed(value) = &found.value {
        let problem = match value.as_str() {
            Some(text) => Selector::parse(text).err().map(|error| error.to_string()),
            None => Some("a selector is text".to_owned()),
        };
        if let Some(problem) = problem {
            faults.add(
                found.at,
                FaultCode::InvalidValue,
                problem,
                "write a label selector like `tier=web,zone in (a,b),!legacy`",
            );
        }
    }
    found.value
}

fn selector(fields: &mut Fields<'_, '_>) -> Option<Selector> {
    let found = fields.text("selector")?;
    match Selector::parse(&found.value) {
        Ok(selector) => Some(selector),
        Err(error) => {
            fields.faults().add(
                found.at,
                FaultCode::InvalidValue,
                error.to_string(),
                "write a label selector like `tier=web,!legacy`",
            );
            None
        }
    }
}

fn condition(fields: &mut Fields<'_, '_>, known: &Known<'_>) -> Option<Expression> {
    let found = fields.expression("where")?;
    check(&found.value, found.at, Place::MATCHING, known, fields.faults());
    Some(found.value)
}

fn words<T: Copy>(fields: &mut Fields<'_, '_>, name: &'static str, choices: &[(&'static str, T)]) -> Vec<T> {
    let faults = fields.faults();
    fields
        .list(name)
        .iter()
        .filter_map(|node| choice(node, name, choices, faults))
        .collect()
}

fn edge(found: &Placed<String>, faults: &Faults) {
    if !EDGES.contains(&found.value.as_str()) {
        faults.add(
            found.at,
            FaultCode::InvalidValue,
            format!("there is no edge type `{}`", found.value),
            suggestion(&found.value, EDGES),
        );
    }
}

fn topology(node: &Node, faults: &Faults) -> Option<Topology> {
    let mut fields = Fields::open(node, "topology", faults)?;
    let edges = fields.required("edge").map(|node| one_or_more(node, "edge", faults));
    fields.required("type");
    let place_type = fields.parsed("type");
    fields.finish();
    let edges = edges?;
    for found in &edges {
        edge(found, faults);
    }
    Some(Topology {
        edges: edges.into_iter().map(|e| e.value).collect(),
        place_type: place_type?,
    })
}

fn relation(node: &Node, slot: &str, slots: &BTreeSet<&str>, faults: &Faults) -> Option<Relation> {
    let mut fields = Fields::open(node, "relation", faults)?;
    let along = fields.required_text("edge");
    let other = fields.required_text("slot");
    fields.finish();
    let (along, other) = (along?, other?);
    edge(&along, faults);
    if !slots.contains(other.value.as_str()) || other.value == slot {
        faults.add(
            other.at,
            FaultCode::UnknownSlot,
            format!("there is no other slot `{}`", other.value),
            suggestion(&other.value, slots.iter().copied().filter(|name| *name != slot)),
        );
        return None;
    }
    Some(Relation {
        edge: along.value,
        slot: other.value,
    })
}

fn must_not(node: &Node, known: &Known<'_>, faults: &Faults) -> Option<MustNot> {
    let mut fields = Fields::open(node, "must_not", faults)?;
    let must_not = MustNot {
        capabilities: fields.parsed_list("capabilities"),
        selector: selector(&mut fields),
        condition: condition(&mut fields, known),
    };
    fields.finish();
    Some(must_not)
}

fn preference(node: &Node, known: &Known<'_>, faults: &Faults) -> Option<Preference> {
    let mut fields = Fields::open(node, "preference", faults)?;
    let preference = Preference {
        selector: selector(&mut fields),
        condition: condition(&mut fields, known),
        weight: fields.integer("weight", 1, 1000).unwrap_or(1),
    };
    fields.finish();
    if preference.selector.is_none() && preference.condition.is_none() {
        faults.add(
            node.at,
            FaultCode::MissingField,
            "this preference prefers nothing",
            "add `selector` or `where`",
        );
    }
    Some(preference)
}

/// A slot that another one is joined to binds exactly one resource, and no two wait for each other.
fn check_relations(requirements: &BTreeMap<String, Requirement>, entries: &[(Key, Node)], faults: &Faults) {
    for requirement in requirements.values() {
        let Some(relation) = &requirement.relation else {
            continue;
        };
        let at = entries
            .iter()
            .find(|(key, _)| key.name == requirement.slot)
            .map_or_else(Position::default, |(_, node)| node.place_of("/relation/slot"));
        if let Some(other) = requirements.get(&relation.slot)
            && (other.count != Count { min: 1, max: Some(1) })
        {
            faults.add(
                at,
                FaultCode::InvalidValue,
                format!("the slot `{}` may bind several resources", relation.slot),
                "relate to a slot with `count: 1`",
            );
        }
        let mut seen = vec![requirement.slot.as_str()];
        let mut next = Some(relation);
        while let Some(step) = next {
            if seen.contains(&step.slot.as_str()) {
                faults.add(
                    at,
                    FaultCode::Cycle,
                    format!(
                        "the relations of slots go in a circle: {} → {}",
                        seen.join(" → "),
                        step.slot
                    ),
                    "remove one of them",
                );
                break;
            }
            seen.push(&step.slot);
            next = requirements.get(&step.slot).and_then(|r| r.relation.as_ref());
        }
    }
}
