//! The resource types of one organization: the built-in taxonomy and its own, with inheritance.
//!
//! Invariants: the parent of a type never changes, so there is no cycle; a derived type is at most as permissive as
//! its parent, at registration and after every later change of either.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kernel::DottedName;

use crate::edge::EdgeRule;
use crate::fault::{self, Fault, FaultCode};
use crate::lifecycle::Transitions;
use crate::limits::MAX_DESCRIPTION;
use crate::resource_type::{ResolvedType, TypeDefinition};
use crate::schema::Schema;

/// Most steps from a type to its root.
pub const MAX_INHERITANCE: usize = 8;

/// A stored definition that no longer resolves. It cannot come from [`Types::admit`].
#[derive(Debug, thiserror::Error)]
#[error("the stored resource type {name} does not resolve: {faults:?}")]
pub struct UnresolvedType {
    pub name: DottedName,
    pub faults: Vec<Fault>,
}

/// All types that an organization can use.
#[derive(Debug, Clone, Default)]
pub struct Types {
    all: BTreeMap<DottedName, Arc<ResolvedType>>,
}

impl Types {
    /// Types over `base`, with `definitions` in any order.
    ///
    /// # Errors
    /// The first definition that does not resolve.
    pub fn over(base: &Self, definitions: Vec<TypeDefinition>, built_in: bool) -> Result<Self, UnresolvedType> {
        let mut types = base.clone();
        let mut waiting = definitions;
        while !waiting.is_empty() {
            let (ready, later): (Vec<_>, Vec<_>) = waiting
                .into_iter()
                .partition(|d| d.parent.as_ref().is_none_or(|p| types.all.contains_key(p)));
            if let (true, Some(stuck)) = (ready.is_empty(), later.first()) {
                let faults = vec![unknown_parent(stuck.parent.as_ref())];
                return Err(UnresolvedType {
                    name: stuck.name.clone(),
                    faults,
                });
            }
            for definition in ready {
                let name = definition.name.clone();
                let resolved = types.resolve(definition, built_in).map_err(|faults| UnresolvedType {
                    name: name.clone(),
                    faults,
                })?;
                types.all.insert(name, Arc::new(resolved));
            }
            waiting = later;
        }
        Ok(types)
    }

    /// The type of this name.
    #[must_use]
    pub fn get(&self, name: &DottedName) -> Option<&Arc<ResolvedType>> {
        self.all.get(name)
    }

    /// Every type, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ResolvedType>> {
        self.all.values()
    }

    /// Whether `name` is `ancestor` or derives from it.
    #[must_use]
    pub fn is_a(&self, name: &DottedName, ancestor: &DottedName) -> bool {
        self.all.get(name).is_some_and(|t| t.is_a(ancestor))
    }

    /// `name` and every type that derives from it.
    #[must_use]
    pub fn derived(&self, name: &DottedName) -> BTreeSet<DottedName> {
        self.all
            .values()
            .filter(|t| t.is_a(name))
            .map(|t| t.name.clone())
            .collect()
    }

    /// Decides whether `definition` may be registered, new or in place of the one with its name.
    ///
    /// # Errors
    /// Every fault, by place in the definition.
    pub fn admit(&self, definition: TypeDefinition) -> Result<ResolvedType, Vec<Fault>> {
        let current = self.all.get(&definition.name);
        if current.is_some_and(|t| t.built_in) {
            let detail = format!(
                "{} is part of the built-in taxonomy; derive a type from it",
                definition.name
            );
            return Err(vec![Fault::new("", FaultCode::BuiltIn, detail)]);
        }
        let mut faults = Vec::new();
        if let Some(current) = current {
            if current.definition.parent != definition.parent {
                let detail = "the parent of a registered type is fixed";
                faults.push(Fault::new("/parent", FaultCode::ParentFixed, detail));
            }
        } else if definition.parent.as_ref() == Some(&definition.name) {
            faults.push(unknown_parent(definition.parent.as_ref()));
        }
        fault::none(faults)?;
        let resolved = self.resolve(definition, false)?;
        let mut faults = self.prefix_faults(&resolved);
        if let Some(parent) = resolved.ancestors.first().and_then(|p| self.all.get(p)) {
            faults.extend(self.widening_faults(&resolved, parent));
        }
        faults.extend(self.target_faults(&resolved));
        faults.extend(self.child_faults(&resolved));
        fault::none(faults)?;
        Ok(resolved)
    }

    fn resolve(&self, definition: TypeDefinition, built_in: bool) -> Result<ResolvedType, Vec<Fault>> {
        let parent = match &definition.parent {
            None => None,
            Some(name) => Some(
                self.all
                    .get(name)
                    .ok_or_else(|| vec![unknown_parent(definition.parent.as_ref())])?,
            ),
        };
        let mut faults = own_faults(&definition);
        let mut compile = |schema: Option<&serde_json::Value>, pointer: &str, inherited: Option<&Vec<Arc<Schema>>>| {
            let mut schemas = inherited.cloned().unwrap_or_default();
            match schema.map(|s| Schema::compile(s, pointer)) {
                Some(Ok(schema)) => schemas.push(Arc::new(schema)),
                Some(Err(found)) => faults.extend(found),
                None => {}
            }
            schemas
        };
        let desired = compile(
            definition.desired_schema.as_ref(),
            "/desired_state_schema",
            parent.map(|p| &p.desired),
        );
        let observed = compile(
            definition.observed_schema.as_ref(),
            "/observed_state_schema",
            parent.map(|p| &p.observed),
        );
        let ancestors: Vec<DottedName> = parent
            .map(|p| {
                core::iter::once(p.name.clone())
                    .chain(p.ancestors.iter().cloned())
                    .collect()
            })
            .unwrap_or_default();
        if ancestors.len() > MAX_INHERITANCE {
            let detail = format!("at most {MAX_INHERITANCE} steps to the root type");
            faults.push(Fault::new("/parent", FaultCode::InheritanceTooDeep, detail));
        }
        let id_prefix = definition
            .id_prefix
            .clone()
            .or_else(|| parent.map(|p| p.id_prefix.clone()));
        if id_prefix.is_none() {
            let detail = "a type without a parent states its id prefix";
            faults.push(Fault::new("/id_prefix", FaultCode::PrefixMissing, detail));
        }
        fault::none(faults)?;
        let transitions = definition.transitions.clone().map(Transitions::new);
        Ok(ResolvedType {
            name: definition.name.clone(),
            built_in,
            ancestors,
            id_prefix: id_prefix.unwrap_or_default(),
            transitions: transitions
                .or_else(|| parent.map(|p| p.transitions.clone()))
                .unwrap_or_else(Transitions::standard),
            edges: definition
                .edges
                .clone()
                .or_else(|| parent.map(|p| p.edges.clone()))
                .unwrap_or_default(),
            desired,
            observed,
            definition,
        })
    }

    fn prefix_faults(&self, resolved: &ResolvedType) -> Vec<Fault> {
        let mut faults = Vec::new();
        if let Some(current) = self.all.get(&resolved.name)
            && current.id_prefix != resolved.id_prefix
        {
            let detail = format!("the id prefix of a registered type is fixed: {:?}", current.id_prefix);
            faults.push(Fault::new("/id_prefix", FaultCode::PrefixFixed, detail));
        }
        let root = resolved.ancestors.last().unwrap_or(&resolved.name);
        let taken = self
            .all
            .values()
            .find(|t| t.id_prefix == resolved.id_prefix && t.name != resolved.name && !t.is_a(root));
        if let Some(other) = taken {
            let detail = format!(
                "the id prefix {:?} belongs to {}, which is not related",
                other.id_prefix, other.name
            );
            faults.push(Fault::new("/id_prefix", FaultCode::PrefixTaken, detail));
        }
        faults
    }

    fn widening_faults(&self, child: &ResolvedType, parent: &ResolvedType) -> Vec<Fault> {
        let widens = |pointer: String, detail: String| Fault::new(pointer, FaultCode::Widens, detail);
        let mut faults: Vec<Fault> = child
            .transitions
            .beyond(&parent.transitions)
            .into_iter()
            .map(|(from, to)| {
                let (from, to) = (from.as_str(), to.as_str());
                widens(
                    "/lifecycle_transitions".into(),
                    format!("{} does not allow {from} to {to}", parent.name),
                )
            })
            .collect();
        for (index, rule) in child.edges.iter().enumerate() {
            let place = |field: &str| format!("/edges/{index}{field}");
            let word = rule.edge_type.as_str();
            match parent.edge_rule(rule.edge_type) {
                None => faults.push(widens(place(""), format!("{} has no {word} edges", parent.name))),
                Some(wider) => faults.extend(
                    self.wider_than(rule, wider)
                        .into_iter()
                        .map(|field| widens(place(field), format!("wider than the {word} rule of {}", parent.name))),
                ),
            }
        }
        faults
    }

    /// The fields in which `rule` allows more than `wider`.
    fn wider_than(&self, rule: &EdgeRule, wider: &EdgeRule) -> Vec<&'static str> {
        let more = |mine: Option<u32>, theirs: Option<u32>| theirs.is_some_and(|t| mine.is_none_or(|m| m > t));
        let mut fields = Vec::new();
        let inside = |target: &DottedName| wider.targets.iter().any(|allowed| self.is_a(target, allowed));
        if !rule.targets.iter().all(inside) {
            fields.push("/targets");
        }
        if more(rule.max_targets, wider.max_targets) {
            fields.push("/max_targets");
        }
        if more(rule.max_sources, wider.max_sources) {
            fields.push("/max_sources");
        }
        if rule.cycles_allowed && !wider.cycles_allowed {
            fields.push("/cycles_allowed");
        }
        fields
    }

    fn target_faults(&self, resolved: &ResolvedType) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (index, rule) in resolved.definition.edges.iter().flatten().enumerate() {
            for (at, target) in rule.targets.iter().enumerate() {
                if *target != resolved.name && !self.all.contains_key(target) {
                    faults.push(Fault::new(
                        format!("/edges/{index}/targets/{at}"),
                        FaultCode::UnknownType,
                        format!("there is no resource type {target}"),
                    ));
                }
            }
        }
        faults
    }

    /// A change of a type must leave its children narrower than it.
    fn child_faults(&self, resolved: &ResolvedType) -> Vec<Fault> {
        let children = self
            .all
            .values()
            .filter(|t| t.definition.parent.as_ref() == Some(&resolved.name));
        let mut faults = Vec::new();
        for child in children {
            let own_transitions = child.definition.transitions.is_some();
            let own_edges = child.definition.edges.is_some();
            for fault in self.widening_faults(child, resolved) {
                let transitions = fault.pointer == "/lifecycle_transitions";
                if (transitions && own_transitions) || (!transitions && own_edges) {
                    let place = if transitions {
                        "/lifecycle_transitions"
                    } else {
                        "/edges"
                    };
                    let detail = format!("{} derives from this and says more: {}", child.name, fault.detail);
                    faults.push(Fault::new(place, FaultCode::Widens, detail));
                }
            }
        }
        faults
    }
}

fn own_faults(definition: &TypeDefinition) -> Vec<Fault> {
    let mut faults = Vec::new();
    if definition.description.len() > MAX_DESCRIPTION {
        let detail = format!("at most {MAX_DESCRIPTION} bytes");
        faults.push(Fault::new("/description", FaultCode::TooLarge, detail));
    }
    let good_prefix = |p: &String| p.len() <= 63 && format!("{p}/x").parse::<kernel::ResourceId>().is_ok();
    if definition.id_prefix.as_ref().is_some_and(|p| !good_prefix(p)) {
        let detail = "an id prefix is at most 63 lower-case letters, digits and '-', beginning with a letter";
        faults.push(Fault::new("/id_prefix", FaultCode::InvalidPrefix, detail));
    }
    let mut seen = BTreeSet::new();
    for (index, rule) in definition.edges.iter().flatten().enumerate() {
        if !seen.insert(rule.edge_type) {
            let detail = format!("a second rule for {}", rule.edge_type.as_str());
            faults.push(Fault::new(format!("/edges/{index}"), FaultCode::Duplicate, detail));
        }
    }
    faults
}

fn unknown_parent(name: Option<&DottedName>) -> Fault {
    let name = name.map(ToString::to_string).unwrap_or_default();
    Fault::new(
        "/parent",
        FaultCode::UnknownParent,
        format!("there is no resource type {name}"),
    )
}
