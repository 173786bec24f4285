//! Typed, directed edges: which may leave a resource, how many, and whether they may close a circle.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{DottedName, ResourceId};

use crate::fault::{Fault, FaultCode};
use crate::limits::MAX_EDGES;
use crate::resource_type::ResolvedType;
use crate::types::Types;

/// What an edge says about its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeType {
    HostedOn,
    MemberOf,
    PartOf,
    ConnectsTo,
    DependsOn,
    BacksUp,
}

impl EdgeType {
    /// Every edge type.
    pub const ALL: [Self; 6] = [
        Self::HostedOn,
        Self::MemberOf,
        Self::PartOf,
        Self::ConnectsTo,
        Self::DependsOn,
        Self::BacksUp,
    ];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HostedOn => "hosted_on",
            Self::MemberOf => "member_of",
            Self::PartOf => "part_of",
            Self::ConnectsTo => "connects_to",
            Self::DependsOn => "depends_on",
            Self::BacksUp => "backs_up",
        }
    }

    /// The edge type with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.as_str() == word)
    }
}

/// An edge of the resource that holds it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    pub edge_type: EdgeType,
    pub target: ResourceId,
}

/// What becomes of an edge when its target is to be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDelete {
    Restrict,
    Detach,
}

/// What edges of one type may leave resources of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeRule {
    pub edge_type: EdgeType,
    pub targets: Vec<DottedName>,
    pub max_targets: Option<u32>,
    pub max_sources: Option<u32>,
    pub cycles_allowed: bool,
    pub on_delete: OnDelete,
    pub carries_health: bool,
}

/// What the store knows about the far end of an edge that is to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeFacts {
    /// None when there is no such resource.
    pub target_type: Option<DottedName>,
    /// Edges of the same type that arrive at the target already, from resources of the source's type.
    pub sources: u32,
    /// Whether edges of the same type lead from the target back to the source.
    pub reaches_source: bool,
}

/// Faults of giving a resource the edges `next`, of which `facts` has the new ones. `pointer_of` says where
/// to blame an edge.
pub fn faults(
    resource_type: &ResolvedType,
    source: &ResourceId,
    next: &BTreeSet<Edge>,
    facts: &BTreeMap<Edge, EdgeFacts>,
    types: &Types,
    pointer_of: impl Fn(&Edge) -> String,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    if next.len() > MAX_EDGES {
        let detail = format!("{} edges; at most {MAX_EDGES}", next.len());
        faults.push(Fault::new("/edges", FaultCode::TooMany, detail));
    }
    for edge in next {
        let Some(known) = facts.get(edge) else { continue };
        let pointer = pointer_of(edge);
        match resource_type.edge_rule(edge.edge_type) {
            Some(rule) => faults.extend(new_edge_faults(rule, source, edge, known, types, &pointer)),
            None => faults.push(Fault::new(
                pointer,
                FaultCode::EdgeNotAllowed,
                format!("{} has no {} edges", resource_type.name, edge.edge_type.as_str()),
            )),
        }
    }
    for rule in &resource_type.edges {
        let Some(most) = rule.max_targets else { continue };
        let of_type = |e: &&Edge| e.edge_type == rule.edge_type;
        let newest = next.iter().rfind(|e| of_type(e) && facts.contains_key(e));
        let count = next.iter().filter(of_type).count();
        if let (Some(blamed), true) = (newest, count > most as usize) {
            faults.push(Fault::new(
                pointer_of(blamed),
                FaultCode::TooManyTargets,
                format!(
                    "{count} {} edges would leave {source}; {} has at most {most}",
                    rule.edge_type.as_str(),
                    resource_type.name
                ),
            ));
        }
    }
    faults
}

fn new_edge_faults(
    rule: &EdgeRule,
    source: &ResourceId,
    edge: &Edge,
    facts: &EdgeFacts,
    types: &Types,
    pointer: &str,
) -> Vec<Fault> {
    let word = edge.edge_type.as_str();
    let mut faults = Vec::new();
    if edge.target == *source {
        faults.push(Fault::new(
            pointer,
            FaultCode::Cycle,
            format!("{source} would be {word} itself"),
        ));
        return faults;
    }
    let Some(target_type) = &facts.target_type else {
        faults.push(Fault::new(
            pointer,
            FaultCode::UnknownTarget,
            format!("there is no resource {}", edge.target),
        ));
        return faults;
    };
    if !rule.targets.iter().any(|allowed| types.is_a(target_type, allowed)) {
        let allowed: Vec<&str> = rule.targets.iter().map(DottedName::as_str).collect();
        faults.push(Fault::new(
            pointer,
            FaultCode::TargetTypeNotAllowed,
            format!(
                "{word} leads to {}; {} is {target_type}",
                allowed.join(" or "),
                edge.target
            ),
        ));
    }
    if let Some(most) = rule.max_sources
        && facts.sources >= most
    {
        faults.push(Fault::new(
            pointer,
            FaultCode::TooManySources,
            format!("{} already has its {most} incoming {word} edges", edge.target),
        ));
    }
    if facts.reaches_source && !rule.cycles_allowed {
        faults.push(Fault::new(
            pointer,
            FaultCode::Cycle,
            format!("{} already leads to {source} by {word}", edge.target),
        ));
    }
    faults
}
