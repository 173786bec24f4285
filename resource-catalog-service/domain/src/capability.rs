//! Capability definitions: what a capability's attributes look like, and what its provider provides with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::{DottedName, SoftwareVersion};
use serde_json::{Map, Value};

use crate::fault::{self, Fault, FaultCode};
use crate::limits::{MAX_DESCRIPTION, json_faults};
use crate::schema::Schema;
use crate::types::MAX_INHERITANCE;

/// A capability as somebody defined it.
#[derive(Debug, Clone, PartialEq)]
pub struct CapabilityDefinition {
    pub name: DottedName,
    pub parent: Option<DottedName>,
    pub description: String,
    pub attribute_schema: Option<Value>,
}

/// A capability with its parents counted in.
#[derive(Debug, Clone)]
pub struct ResolvedCapability {
    pub definition: CapabilityDefinition,
    /// Nearest first.
    pub ancestors: Vec<DottedName>,
    attributes: Vec<Arc<Schema>>,
}

/// A stored definition that no longer resolves. It cannot come from [`Capabilities::admit`].
#[derive(Debug, thiserror::Error)]
#[error("the stored capability definition {name} does not resolve: {faults:?}")]
pub struct UnresolvedCapability {
    pub name: DottedName,
    pub faults: Vec<Fault>,
}

/// All capabilities that an organization has defined.
#[derive(Debug, Clone, Default)]
pub struct Capabilities {
    all: BTreeMap<DottedName, Arc<ResolvedCapability>>,
}

impl Capabilities {
    /// Capabilities from stored definitions, in any order.
    ///
    /// # Errors
    /// The first definition that does not resolve.
    pub fn new(definitions: Vec<CapabilityDefinition>) -> Result<Self, UnresolvedCapability> {
        let mut capabilities = Self::default();
        let mut waiting = definitions;
        while !waiting.is_empty() {
            let (ready, later): (Vec<_>, Vec<_>) = waiting
                .into_iter()
                .partition(|d| d.parent.as_ref().is_none_or(|p| capabilities.all.contains_key(p)));
            if let (true, Some(stuck)) = (ready.is_empty(), later.first()) {
                return Err(UnresolvedCapability {
                    name: stuck.name.clone(),
                    faults: vec![unknown_parent(stuck.parent.as_ref())],
                });
            }
            for definition in ready {
                let name = definition.name.clone();
                let resolved = capabilities
                    .resolve(definition)
                    .map_err(|faults| UnresolvedCapability {
                        name: name.clone(),
                        faults,
                    })?;
                capabilities.all.insert(name, Arc::new(resolved));
            }
            waiting = later;
        }
        Ok(capabilities)
    }

    /// The capability of this name.
    #[must_use]
    pub fn get(&self, name: &DottedName) -> Option<&Arc<ResolvedCapability>> {
        self.all.get(name)
    }

    /// Decides whether `definition` may be registered, new or in place of the one with its name.
    ///
    /// # Errors
    /// Every fault, by place in the definition.
    pub fn admit(&self, definition: CapabilityDefinition) -> Result<ResolvedCapability, Vec<Fault>> {
        if let Some(current) = self.all.get(&definition.name)
            && current.definition.parent != definition.parent
        {
            let detail = "the parent of a registered capability is fixed";
            return Err(vec![Fault::new("/parent", FaultCode::ParentFixed, detail)]);
        }
        self.resolve(definition)
    }

    fn resolve(&self, definition: CapabilityDefinition) -> Result<ResolvedCapability, Vec<Fault>> {
        let mut faults = Vec::new();
        if definition.description.len() > MAX_DESCRIPTION {
            let detail = format!("at most {MAX_DESCRIPTION} bytes");
            faults.push(Fault::new("/description", FaultCode::TooLarge, detail));
        }
        let parent = definition.parent.as_ref().map(|name| self.all.get(name));
        let mut attributes = Vec::new();
        let mut ancestors = Vec::new();
        match parent {
            Some(Some(parent)) if definition.parent.as_ref() != Some(&definition.name) => {
                attributes.clone_from(&parent.attributes);
                ancestors.push(parent.definition.name.clone());
                ancestors.extend(parent.ancestors.iter().cloned());
            }
            Some(_) => faults.push(unknown_parent(definition.parent.as_ref())),
            None => {}
        }
        if ancestors.len() > MAX_INHERITANCE {
            let detail = format!("at most {MAX_INHERITANCE} steps to the root capability");
            faults.push(Fault::new("/parent", FaultCode::InheritanceTooDeep, detail));
        }
        match definition
            .attribute_schema
            .as_ref()
            .map(|s| Schema::compile(s, "/attribute_schema"))
        {
            Some(Ok(schema)) => attributes.push(Arc::new(schema)),
            Some(Err(found)) => faults.extend(found),
            None => {}
        }
        fault::none(faults)?;
        Ok(ResolvedCapability {
            definition,
            ancestors,
            attributes,
        })
    }
}

impl ResolvedCapability {
    /// Faults of giving this capability these attributes.
    #[must_use]
    pub fn attribute_faults(&self, attributes: &Map<String, Value>, pointer: &str) -> Vec<Fault> {
        let value = Value::Object(attributes.clone());
        let mut faults = json_faults(&value, pointer);
        for violation in self.attributes.iter().flat_map(|s| s.violations(&value)) {
            let place = format!("{pointer}{}", violation.pointer);
            faults.push(Fault::new(place, FaultCode::SchemaViolation, violation.detail));
        }
        if let Some(version) = attributes.get("version") {
            let problem = match version.as_str().map(str::parse::<SoftwareVersion>) {
                Some(Ok(_)) => None,
                Some(Err(error)) => Some(error.to_string()),
                None => Some("a version is a string".to_owned()),
            };
            faults.extend(problem.map(|p| Fault::new(format!("{pointer}/version"), FaultCode::NotAVersion, p)));
        }
        faults
    }
}

fn unknown_parent(name: Option<&DottedName>) -> Fault {
    let name = name.map(ToString::to_string).unwrap_or_default();
    Fault::new(
        "/parent",
        FaultCode::UnknownParent,
        format!("there is no capability {name}"),
    )
}
