use std::collections::BTreeMap;

use resource_catalog_api as api;
use resource_catalog_domain as domain;
use serde_json::{Map, Value};

use super::edge;

/// A resource as it is sent, with its pin.
pub fn resource(resource: &domain::Resource) -> api::Resource {
    let mut sent = api::Resource {
        resource_id: resource.id.clone(),
        uid: resource.uid,
        resource_type: resource.resource_type.clone(),
        resource_type_ancestors: resource.ancestors.clone(),
        organization_id: resource.organization,
        environment: resource.environment.clone(),
        labels: resource.labels.clone(),
        annotations: resource.annotations.clone(),
        lifecycle_status: resource.lifecycle,
        health: api::Health {
            status: resource.health.status,
            reasons: resource.health.reasons.clone(),
            observed_at: resource.health.observed_at,
        },
        desired_state: resource.desired.clone(),
        observed_state: resource.observed.clone(),
        connection: resource.connection.clone(),
        version: resource.version,
        desired_generation: resource.desired_generation,
        provided_capabilities: resource.provided.iter().map(provided).collect(),
        edges: resource.edges.iter().map(edge::edge_word).collect(),
        created_at: resource.created_at,
        updated_at: resource.updated_at,
        pin: kernel::Sha256Digest::from_bytes([0; 32]),
    };
    sent.pin = api::pin_of(&sent);
    sent
}

fn provided((name, provided): (&kernel::DottedName, &domain::Provided)) -> api::ProvidedCapability {
    api::ProvidedCapability {
        capability: name.clone(),
        implies: provided.implies.clone(),
        attributes: provided.attributes.clone(),
        evidence: provided.evidence.clone(),
        provenance: match &provided.provenance {
            domain::Provenance::Operation { operation, command } => api::Provenance::Operation {
                operation_id: *operation,
                command_id: *command,
            },
            domain::Provenance::Observer { subject } => api::Provenance::Observer {
                subject: subject.clone(),
            },
        },
        provided_at: provided.provided_at,
    }
}

/// The payload of an event: the whole resource.
pub fn payload(resource: &api::Resource) -> Result<Map<String, Value>, serde_json::Error> {
    match serde_json::to_value(resource)? {
        Value::Object(fields) => Ok(fields),
        other => Err(serde::ser::Error::custom(format_args!("a resource became {other}"))),
    }
}

/// What is asked of a resource.
pub fn desired(asked: api::ApplyResource) -> domain::Desired {
    domain::Desired {
        resource_type: asked.resource_type,
        environment: asked.environment,
        labels: asked.labels,
        annotations: asked.annotations,
        lifecycle: asked.lifecycle_status,
        desired: asked.desired_state,
        connection: asked.connection,
        edges: asked.edges.map(|edges| edges.into_iter().map(edge::edge).collect()),
    }
}

/// How a resource that was sent is selected.
pub fn membership(resource: &api::Resource) -> domain::Membership {
    let mut capabilities: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for provided in &resource.provided_capabilities {
        let version = provided.attributes.get("version").and_then(Value::as_str);
        let version = version.and_then(|text| text.parse().ok());
        for name in core::iter::once(&provided.capability).chain(&provided.implies) {
            capabilities.entry(name.clone()).or_default().push(version.clone());
        }
    }
    domain::Membership {
        resource_type: resource.resource_type.clone(),
        ancestors: resource.resource_type_ancestors.clone(),
        environment: resource.environment.clone(),
        labels: resource.labels.clone(),
        lifecycle: resource.lifecycle_status,
        health: resource.health.status,
        capabilities,
    }
}
