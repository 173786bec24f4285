//! What a new version changed: the places, the events it yields, and how the resource was selected before.
//!
//! One version is one change record. It yields `resource.updated` always, and the others when they apply.

use std::collections::{BTreeMap, BTreeSet};

use contracts::ProjectionEventType;
use serde_json::{Map, Value};

use crate::fault::escape;
use crate::filter::Membership;
use crate::resource::Resource;

/// Deepest pointer into a state that is told apart.
const MAX_POINTER_DEPTH: usize = 6;
/// Most places told apart in one section; beyond, the section as a whole.
const MAX_PLACES: usize = 64;

/// One new version of a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub next: Resource,
    /// JSON Pointers into the resource, sorted; capabilities by name, edges by type and target.
    pub changed: Vec<String>,
    pub events: Vec<ProjectionEventType>,
    /// How the resource was selected before, where that changed: who watched it then is told that it left.
    pub before: Option<Membership>,
}

/// The places that one version changed, as kept by the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionChanges {
    pub version: i64,
    pub changed: Vec<String>,
}

/// One place that changed since the version a command expected.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    pub pointer: String,
    pub version: i64,
    pub overlaps: bool,
}

impl Change {
    /// The first version of a resource.
    #[must_use]
    pub fn created(next: Resource) -> Self {
        let mut events = vec![
            ProjectionEventType::ResourceCreated,
            ProjectionEventType::ResourceUpdated,
        ];
        if !next.provided.is_empty() {
            events.push(ProjectionEventType::CapabilityProvided);
        }
        if !next.edges.is_empty() {
            events.push(ProjectionEventType::RelationshipChanged);
        }
        Self {
            next,
            changed: vec![String::new()],
            events,
            before: None,
        }
    }

    /// The version `next` after `before`.
    #[must_use]
    pub fn between(before: &Resource, next: Resource) -> Self {
        let changed = places(before, &next);
        let mut events = vec![ProjectionEventType::ResourceUpdated];
        if next
            .provided
            .iter()
            .any(|(name, held)| before.provided.get(name) != Some(held))
        {
            events.push(ProjectionEventType::CapabilityProvided);
        }
        if before.provided.keys().any(|name| !next.provided.contains_key(name)) {
            events.push(ProjectionEventType::CapabilityWithdrawn);
        }
        if before.health.status != next.health.status {
            events.push(ProjectionEventType::ResourceHealthChanged);
        }
        if before.edges != next.edges {
            events.push(ProjectionEventType::RelationshipChanged);
        }
        let old = Membership::of(before);
        let before = (old != Membership::of(&next)).then_some(old);
        Self {
            next,
            changed,
            events,
            before,
        }
    }
}

/// What changed since the version a command expected, given the kept `history` after it; `touched` is what the command
/// touches. History that is not whole makes one difference at the root, which overlaps everything.
#[must_use]
pub fn differences(expected: i64, current: i64, history: &[VersionChanges], touched: &[String]) -> Vec<Difference> {
    let known: BTreeSet<i64> = history.iter().map(|h| h.version).collect();
    if expected > current || (expected + 1..=current).any(|v| !known.contains(&v)) {
        return vec![Difference {
            pointer: String::new(),
            version: current,
            overlaps: true,
        }];
    }
    let mut latest: BTreeMap<&str, i64> = BTreeMap::new();
    for entry in history.iter().filter(|h| h.version > expected) {
        for place in &entry.changed {
            let version = latest.entry(place).or_default();
            *version = entry.version.max(*version);
        }
    }
    latest
        .into_iter()
        .map(|(place, version)| Difference {
            pointer: place.to_owned(),
            version,
            overlaps: touched.iter().any(|t| overlap(t, place)),
        })
        .collect()
}

/// Whether one pointer is the other or leads into it.
#[must_use]
pub fn overlap(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    long.strip_prefix(short)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The places that a merge patch touches, below `pointer`.
#[must_use]
pub fn patch_places(patch: &Map<String, Value>, pointer: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in patch {
        let place = format!("{pointer}/{}", escape(key));
        match value {
            Value::Object(inner) if !inner.is_empty() => found.extend(patch_places(inner, &place)),
            _ => found.push(place),
        }
    }
    found
}

fn places(before: &Resource, next: &Resource) -> Vec<String> {
    let mut found = Vec::new();
    let mut plain = |differs: bool, pointer: &str| {
        if differs {
            found.push(pointer.to_owned());
        }
    };
    plain(before.environment != next.environment, "/environment");
    plain(before.lifecycle != next.lifecycle, "/lifecycle_status");
    plain(before.health != next.health, "/health");
    for (old, new, section) in [
        (&before.labels, &next.labels, "/labels"),
        (&before.annotations, &next.annotations, "/annotations"),
    ] {
        section_places(keys_that_differ(old, new), section, &mut found);
    }
    section_places(
        keys_that_differ(&before.provided, &next.provided),
        "/provided_capabilities",
        &mut found,
    );
    let edges = before
        .edges
        .symmetric_difference(&next.edges)
        .map(|e| format!("{}/{}", e.edge_type.as_str(), escape(e.target.as_str())));
    section_places(edges.collect(), "/edges", &mut found);
    for (old, new, section) in [
        (&before.desired, &next.desired, "/desired_state"),
        (&before.observed, &next.observed, "/observed_state"),
        (&before.connection, &next.connection, "/connection"),
    ] {
        let mut inside = Vec::new();
        map_places(old, new, "", 0, &mut inside);
        let inside = inside.into_iter().map(|p| p[1..].to_owned()).collect();
        section_places(inside, section, &mut found);
    }
    found.sort();
    found.dedup();
    found
}

fn section_places(inside: Vec<String>, section: &str, found: &mut Vec<String>) {
    if inside.len() > MAX_PLACES {
        found.push(section.to_owned());
    } else {
        found.extend(inside.into_iter().map(|place| format!("{section}/{place}")));
    }
}

fn keys_that_differ<K: Ord + ToString, V: PartialEq>(old: &BTreeMap<K, V>, new: &BTreeMap<K, V>) -> Vec<String> {
    old.keys()
        .chain(new.keys())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .filter(|key| old.get(key) != new.get(key))
        .map(|key| escape(&key.to_string()))
        .collect()
}

fn map_places(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    pointer: &str,
    depth: usize,
    found: &mut Vec<String>,
) {
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for key in keys {
        let place = format!("{pointer}/{}", escape(key));
        match (old.get(key), new.get(key)) {
            (a, b) if a == b => {}
            (Some(Value::Object(a)), Some(Value::Object(b))) if depth + 1 < MAX_POINTER_DEPTH => {
                map_places(a, b, &place, depth + 1, found);
            }
            _ => found.push(place),
        }
    }
}
