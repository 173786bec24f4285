use kernel::DottedName;
use resource_catalog_api as api;
use resource_catalog_domain as domain;
use resource_catalog_domain::capability::ResolvedCapability;

use crate::registry::Registered;

/// A capability definition, as the domain has it.
pub fn definition(name: DottedName, asked: &api::ApplyCapabilityDefinition) -> domain::CapabilityDefinition {
    domain::CapabilityDefinition {
        name,
        parent: asked.parent.clone(),
        description: asked.description.clone(),
        attribute_schema: asked.attribute_schema.clone(),
    }
}

/// A capability definition as it is sent.
pub fn capability(resolved: &ResolvedCapability, registered: &Registered) -> api::CapabilityDefinition {
    let own = &resolved.definition;
    api::CapabilityDefinition {
        name: own.name.clone(),
        version: registered.version,
        definition: api::ApplyCapabilityDefinition {
            parent: own.parent.clone(),
            description: own.description.clone(),
            attribute_schema: own.attribute_schema.clone(),
        },
        ancestors: resolved.ancestors.clone(),
        created_at: registered.created_at,
        updated_at: registered.updated_at,
    }
}
