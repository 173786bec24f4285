use kernel::DottedName;
use resource_catalog_api as api;
use resource_catalog_domain as domain;

use super::edge;
use crate::registry::Registered;

/// A type definition, as the domain has it.
pub fn definition(name: DottedName, asked: &api::ApplyResourceType) -> domain::TypeDefinition {
    domain::TypeDefinition {
        name,
        parent: asked.parent.clone(),
        description: asked.description.clone(),
        id_prefix: asked.id_prefix.clone(),
        desired_schema: asked.desired_state_schema.clone(),
        observed_schema: asked.observed_state_schema.clone(),
        transitions: asked
            .lifecycle_transitions
            .as_ref()
            .map(|all| all.iter().map(|t| (t.from, t.to.clone())).collect()),
        edges: asked.edges.as_ref().map(|rules| rules.iter().map(edge::rule).collect()),
    }
}

fn definition_word(own: &domain::TypeDefinition) -> api::ApplyResourceType {
    api::ApplyResourceType {
        parent: own.parent.clone(),
        description: own.description.clone(),
        id_prefix: own.id_prefix.clone(),
        desired_state_schema: own.desired_schema.clone(),
        observed_state_schema: own.observed_schema.clone(),
        lifecycle_transitions: own.transitions.as_ref().map(|all| {
            all.iter()
                .map(|(from, to)| api::Transition {
                    from: *from,
                    to: to.clone(),
                })
                .collect()
        }),
        edges: own
            .edges
            .as_ref()
            .map(|rules| rules.iter().map(edge::rule_word).collect()),
    }
}

/// A type as it is sent. `registered` is None for a built-in one.
pub fn resource_type(resolved: &domain::ResolvedType, registered: Option<&Registered>) -> api::ResourceType {
    api::ResourceType {
        name: resolved.name.clone(),
        built_in: resolved.built_in,
        version: registered.map_or(1, |r| r.version),
        definition: definition_word(&resolved.definition),
        effective: api::EffectiveResourceType {
            ancestors: resolved.ancestors.clone(),
            id_prefix: resolved.id_prefix.clone(),
            lifecycle_transitions: resolved
                .transitions
                .iter()
                .map(|(from, to)| api::Transition { from, to })
                .collect(),
            edges: resolved.edges.iter().map(edge::rule_word).collect(),
        },
        created_at: registered.map(|r| r.created_at),
        updated_at: registered.map(|r| r.updated_at),
    }
}
