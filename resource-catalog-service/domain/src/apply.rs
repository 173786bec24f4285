//! Applying what somebody asks of a resource: creating it, or making its desired side so.
//!
//! Applying what is already so makes no new version.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use contracts::LifecycleStatus;
use kernel::id::{OrganizationId, ResourceUid};
use kernel::{DottedName, ResourceId};
use serde_json::{Map, Value};

use crate::edge::{self, Edge, EdgeFacts};
use crate::fault::{self, Fault, FaultCode};
use crate::limits;
use crate::ratchet;
use crate::resource::{Health, Resource};
use crate::resource_type::ResolvedType;
use crate::types::Types;

/// What a resource is asked to be. It replaces what was asked before; absent `lifecycle` and `edges` leave those alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Desired {
    pub resource_type: DottedName,
    pub environment: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub lifecycle: Option<LifecycleStatus>,
    pub desired: Map<String, Value>,
    pub connection: Map<String, Value>,
    pub edges: Option<Vec<Edge>>,
}

/// Who and when, for a new resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Identity {
    pub organization: OrganizationId,
    pub id: ResourceId,
    pub uid: ResourceUid,
    /// Versions go on across the incarnations of one id; 0 for an id never used.
    pub last_version: i64,
}

/// The first version of a new resource.
///
/// # Errors
/// Every fault, by place in the request.
pub fn create(
    identity: Identity,
    asked: Desired,
    facts: &BTreeMap<Edge, EdgeFacts>,
    types: &Types,
    now: DateTime<Utc>,
) -> Result<Resource, Vec<Fault>> {
    let resource_type = known_type(&asked.resource_type, types)?;
    let mut faults = plain_faults(&asked);
    if identity.id.prefix() != resource_type.id_prefix {
        let detail = format!(
            "ids of {} begin with {}/, not with {}/",
            resource_type.name,
            resource_type.id_prefix,
            identity.id.prefix()
        );
        faults.push(Fault::new("/resource_type", FaultCode::PrefixMismatch, detail));
    }
    let desired = Value::Object(asked.desired.clone());
    faults.extend(ratchet::faults(
        &resource_type.desired,
        None,
        &desired,
        "/desired_state",
    ));
    let edges = asked.edges.clone().unwrap_or_default();
    faults.extend(edge_faults(&edges, resource_type, &identity.id, facts, types));
    let resource = Resource {
        id: identity.id,
        uid: identity.uid,
        organization: identity.organization,
        resource_type: resource_type.name.clone(),
        ancestors: resource_type.ancestors.clone(),
        environment: asked.environment,
        labels: asked.labels,
        annotations: asked.annotations,
        lifecycle: asked.lifecycle.unwrap_or(LifecycleStatus::Planned),
        health: Health::unobserved(),
        desired: asked.desired,
        observed: Map::new(),
        connection: asked.connection,
        version: identity.last_version + 1,
        desired_generation: 1,
        provided: BTreeMap::new(),
        edges: edges.into_iter().collect(),
        created_at: now,
        updated_at: now,
    };
    faults.extend(limits::size_faults(&resource, "/desired_state"));
    fault::none(faults)?;
    Ok(resource)
}

/// The next version of `current` when it is asked to be `asked`; None when it already is.
///
/// # Errors
/// Every fault, by place in the request.
pub fn apply(
    current: &Resource,
    asked: Desired,
    facts: &BTreeMap<Edge, EdgeFacts>,
    types: &Types,
    now: DateTime<Utc>,
) -> Result<Option<Resource>, Vec<Fault>> {
    let resource_type = known_type(&asked.resource_type, types)?;
    let mut faults = plain_faults(&asked);
    if asked.resource_type != current.resource_type {
        let detail = format!("{} is {}, which is fixed", current.id, current.resource_type);
        faults.push(Fault::new("/resource_type", FaultCode::TypeFixed, detail));
    }
    if let Some(to) = asked.lifecycle {
        faults.extend(
            resource_type
                .transitions
                .fault(current.lifecycle, to, "/lifecycle_status"),
        );
    }
    let before = Value::Object(current.desired.clone());
    let after = Value::Object(asked.desired.clone());
    if before != after {
        faults.extend(ratchet::faults(
            &resource_type.desired,
            Some(&before),
            &after,
            "/desired_state",
        ));
    }
    if let Some(edges) = &asked.edges {
        faults.extend(edge_faults(edges, resource_type, &current.id, facts, types));
    }
    let mut next = current.successor(now);
    next.environment = asked.environment;
    next.labels = asked.labels;
    next.annotations = asked.annotations;
    next.lifecycle = asked.lifecycle.unwrap_or(current.lifecycle);
    next.desired = asked.desired;
    next.connection = asked.connection;
    if let Some(edges) = asked.edges {
        next.edges = edges.into_iter().collect();
    }
    let asked_anew = next.environment != current.environment
        || next.desired != current.desired
        || next.connection != current.connection;
    if asked_anew {
        next.desired_generation += 1;
    }
    if same(current, &next) && faults.is_empty() {
        return Ok(None);
    }
    faults.extend(limits::size_faults(&next, "/desired_state"));
    fault::none(faults)?;
    Ok(Some(next))
}

/// The next version of `current` with exactly the edges `edges`; None when it has them.
///
/// # Errors
/// Every fault of the edges that are new.
pub fn set_edges(
    current: &Resource,
    edges: BTreeSet<Edge>,
    facts: &BTreeMap<Edge, EdgeFacts>,
    types: &Types,
    now: DateTime<Utc>,
) -> Result<Option<Resource>, Vec<Fault>> {
    if edges == current.edges {
        return Ok(None);
    }
    let resource_type = known_type(&current.resource_type, types)?;
    fault::none(edge::faults(resource_type, &current.id, &edges, facts, types, |_| {
        String::new()
    }))?;
    let mut next = current.successor(now);
    next.edges = edges;
    Ok(Some(next))
}

fn known_type<'a>(name: &DottedName, types: &'a Types) -> Result<&'a ResolvedType, Vec<Fault>> {
    types.get(name).map(AsRef::as_ref).ok_or_else(|| {
        vec![Fault::new(
            "/resource_type",
            FaultCode::UnknownType,
            format!("there is no resource type {name}"),
        )]
    })
}

fn plain_faults(asked: &Desired) -> Vec<Fault> {
    let mut faults = limits::label_faults(&asked.labels, &asked.annotations);
    faults.extend(limits::environment_faults(asked.environment.as_deref()));
    for (map, pointer) in [(&asked.desired, "/desired_state"), (&asked.connection, "/connection")] {
        faults.extend(limits::json_faults(&Value::Object(map.clone()), pointer));
    }
    faults
}

fn edge_faults(
    edges: &[Edge],
    resource_type: &ResolvedType,
    source: &ResourceId,
    facts: &BTreeMap<Edge, EdgeFacts>,
    types: &Types,
) -> Vec<Fault> {
    let place = |edge: &Edge| {
        let index = edges.iter().position(|e| e == edge).unwrap_or_default();
        format!("/edges/{index}")
    };
    let set: BTreeSet<Edge> = edges.iter().cloned().collect();
    let mut faults = edge::faults(resource_type, source, &set, facts, types, place);
    if set.len() < edges.len() {
        faults.push(Fault::new("/edges", FaultCode::Duplicate, "an edge is given twice"));
    }
    faults
}

/// Whether nothing but the version and its time differs.
fn same(current: &Resource, next: &Resource) -> bool {
    let mut next = next.clone();
    next.version = current.version;
    next.updated_at = current.updated_at;
    next == *current
}
