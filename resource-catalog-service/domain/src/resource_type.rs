//! A resource type: as somebody defined it, and as it is once its parents are counted in.

use std::sync::Arc;

use contracts::LifecycleStatus;
use kernel::DottedName;
use serde_json::Value;

use crate::edge::{EdgeRule, EdgeType};
use crate::lifecycle::Transitions;
use crate::schema::Schema;

/// A type's own part; what is absent is inherited.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeDefinition {
    pub name: DottedName,
    pub parent: Option<DottedName>,
    pub description: String,
    pub id_prefix: Option<String>,
    pub desired_schema: Option<Value>,
    pub observed_schema: Option<Value>,
    pub transitions: Option<Vec<(LifecycleStatus, Vec<LifecycleStatus>)>>,
    pub edges: Option<Vec<EdgeRule>>,
}

impl TypeDefinition {
    /// A type that only inherits.
    #[must_use]
    pub const fn derived(name: DottedName, parent: DottedName) -> Self {
        Self {
            name,
            parent: Some(parent),
            description: String::new(),
            id_prefix: None,
            desired_schema: None,
            observed_schema: None,
            transitions: None,
            edges: None,
        }
    }
}

/// A type with its parents counted in. A state must satisfy the schema of the type and those of all its parents,
/// so a schema can only narrow.
#[derive(Debug, Clone)]
pub struct ResolvedType {
    pub name: DottedName,
    pub built_in: bool,
    pub definition: TypeDefinition,
    /// Nearest first.
    pub ancestors: Vec<DottedName>,
    pub id_prefix: String,
    pub transitions: Transitions,
    pub edges: Vec<EdgeRule>,
    pub desired: Vec<Arc<Schema>>,
    pub observed: Vec<Arc<Schema>>,
}

impl ResolvedType {
    /// The rule for edges of this type leaving a resource, if any may.
    #[must_use]
    pub fn edge_rule(&self, edge_type: EdgeType) -> Option<&EdgeRule> {
        self.edges.iter().find(|rule| rule.edge_type == edge_type)
    }

    /// Whether this is `name` or derives from it.
    #[must_use]
    pub fn is_a(&self, name: &DottedName) -> bool {
        self.name == *name || self.ancestors.contains(name)
    }
}
