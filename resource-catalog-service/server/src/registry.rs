//! The resource types and capability definitions of each organization, resolved once and kept while they hold.
//!
//! What is kept is only used after the organization's registry revision was read in the caller's own transaction and
//! found the same, so a stale copy is never believed.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use kernel::DottedName;
use kernel::id::OrganizationId;
use resource_catalog_domain::capability::UnresolvedCapability;
use resource_catalog_domain::types::UnresolvedType;
use resource_catalog_domain::{Capabilities, CapabilityDefinition, TypeDefinition, Types, builtin};

/// Most organizations whose registry is kept.
const KEPT: usize = 256;

/// When a definition was written, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    pub version: i64,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// All definitions of one organization at one revision.
#[derive(Debug, Clone)]
pub struct Registry {
    pub revision: i64,
    pub types: Types,
    pub capabilities: Capabilities,
    pub registered_types: BTreeMap<DottedName, Registered>,
    pub registered_capabilities: BTreeMap<DottedName, Registered>,
}

/// Stored definitions do not resolve.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error(transparent)]
    Type(#[from] UnresolvedType),
    #[error(transparent)]
    Capability(#[from] UnresolvedCapability),
}

impl Registry {
    /// Resolves what is stored.
    ///
    /// # Errors
    /// Something stored does not resolve.
    pub fn resolve(
        revision: i64,
        types: Vec<(TypeDefinition, Registered)>,
        capabilities: Vec<(CapabilityDefinition, Registered)>,
    ) -> Result<Self, RegistryError> {
        let registered_types = types.iter().map(|(d, r)| (d.name.clone(), r.clone())).collect();
        let registered_capabilities = capabilities.iter().map(|(d, r)| (d.name.clone(), r.clone())).collect();
        Ok(Self {
            revision,
            types: Types::over(builtin::types(), types.into_iter().map(|t| t.0).collect(), false)?,
            capabilities: Capabilities::new(capabilities.into_iter().map(|c| c.0).collect())?,
            registered_types,
            registered_capabilities,
        })
    }
}

/// Registries that were resolved before.
#[derive(Debug, Default)]
pub struct Registries(Mutex<HashMap<OrganizationId, Arc<Registry>>>);

impl Registries {
    /// The registry at exactly `revision`, if it is kept.
    pub fn at(&self, organization: OrganizationId, revision: i64) -> Option<Arc<Registry>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(&organization)
            .filter(|registry| registry.revision == revision)
            .cloned()
    }

    /// Keeps `registry`.
    pub fn keep(&self, organization: OrganizationId, registry: Registry) -> Arc<Registry> {
        let registry = Arc::new(registry);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT && !kept.contains_key(&organization) {
            kept.clear();
        }
        kept.insert(organization, Arc::clone(&registry));
        registry
    }
}
