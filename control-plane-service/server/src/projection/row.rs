//! A resource as the copy keeps it: what matching reads, nothing else.

use std::collections::{BTreeMap, BTreeSet};

use contracts::{HealthStatus, LifecycleStatus};
use control_plane_planning::{Candidate, Capability, Edge};
use kernel::{DottedName, ResourceId};
use resource_catalog_api::Resource;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// One row for `projected_resources`, with its edges.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Projected {
    pub resource_id: String,
    pub uid: Uuid,
    pub version: i64,
    pub deleted: bool,
    pub resource_type: String,
    pub types: Vec<String>,
    pub environment: Option<String>,
    pub lifecycle: String,
    pub health: String,
    pub capabilities: Vec<String>,
    pub reachable: bool,
    pub body: Body,
    pub edges: Vec<EdgeRow>,
}

/// One row for `projected_edges`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EdgeRow {
    pub edge_type: String,
    pub target: String,
}

/// What matching reads and nothing selects by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Body {
    pub labels: BTreeMap<String, String>,
    pub capabilities: Vec<CapabilityBody>,
    pub edges: Vec<EdgeRow>,
    pub connection: Map<String, Value>,
    pub desired_generation: i64,
}

/// A provided capability without its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapabilityBody {
    pub capability: DottedName,
    pub implies: Vec<DottedName>,
    pub attributes: Map<String, Value>,
}

/// Why a fact's state cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    #[error("its state cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("its state is that of {found}")]
    OtherResource { found: ResourceId },
    #[error("its state is version {found}, the fact is about {told}")]
    OtherVersion { found: i64, told: i64 },
}

impl Projected {
    /// A state of the catalog.
    ///
    /// # Errors
    /// When it is none.
    pub fn of_state(state: Value) -> Result<Self, RowError> {
        let resource: Resource = serde_json::from_value(state)?;
        Ok(Self::of(resource))
    }

    /// The state that a fact about `resource_id` at `version` carries.
    ///
    /// # Errors
    /// When it carries none, or another resource's.
    pub fn of_fact(resource_id: &ResourceId, version: i64, payload: Map<String, Value>) -> Result<Self, RowError> {
        let row = Self::of_state(Value::Object(payload))?;
        if row.resource_id != resource_id.as_str() {
            let found = row.resource_id.parse().unwrap_or_else(|_| resource_id.clone());
            return Err(RowError::OtherResource { found });
        }
        if row.version != version {
            return Err(RowError::OtherVersion {
                found: row.version,
                told: version,
            });
        }
        Ok(row)
    }

    /// What remains of a deleted resource: that it was there, up to this version.
    pub fn tombstone(resource_id: &ResourceId, uid: Option<Uuid>, version: i64, resource_type: &DottedName) -> Self {
        Self {
            resource_id: resource_id.to_string(),
            uid: uid.unwrap_or_default(),
            version,
            deleted: true,
            resource_type: resource_type.to_string(),
            types: vec![resource_type.to_string()],
            environment: None,
            lifecycle: LifecycleStatus::Decommissioned.as_str().to_owned(),
            health: HealthStatus::Unknown.as_str().to_owned(),
            capabilities: Vec::new(),
            reachable: false,
            body: Body {
                labels: BTreeMap::new(),
                capabilities: Vec::new(),
                edges: Vec::new(),
                connection: Map::new(),
                desired_generation: 0,
            },
            edges: Vec::new(),
        }
    }

    fn of(resource: Resource) -> Self {
        let mut types = vec![resource.resource_type.to_string()];
        types.extend(resource.resource_type_ancestors.iter().map(ToString::to_string));
        let edges: BTreeSet<EdgeRow> = resource
            .edges
            .iter()
            .map(|edge| EdgeRow {
                edge_type: edge.edge_type.as_str().to_owned(),
                target: edge.target.to_string(),
            })
            .collect();
        let edges: Vec<EdgeRow> = edges.into_iter().collect();
        let capabilities: BTreeSet<String> = resource
            .provided_capabilities
            .iter()
            .flat_map(|held| core::iter::once(&held.capability).chain(&held.implies))
            .map(ToString::to_string)
            .collect();
        let mut provided: Vec<CapabilityBody> = resource
            .provided_capabilities
            .into_iter()
            .map(|held| CapabilityBody {
                capability: held.capability,
                implies: held.implies,
                attributes: held.attributes,
            })
            .collect();
        provided.sort_by(|a, b| a.capability.cmp(&b.capability));
        Self {
            resource_id: resource.resource_id.to_string(),
            uid: resource.uid.as_uuid(),
            version: resource.version,
            deleted: false,
            resource_type: resource.resource_type.to_string(),
            types,
            environment: resource.environment,
            lifecycle: resource.lifecycle_status.as_str().to_owned(),
            health: resource.health.status.as_str().to_owned(),
            capabilities: capabilities.into_iter().collect(),
            reachable: !resource.connection.is_empty(),
            body: Body {
                labels: resource.labels,
                capabilities: provided,
                edges: edges.clone(),
                connection: resource.connection,
                desired_generation: resource.desired_generation,
            },
            edges,
        }
    }
}

/// A row as it is read back.
pub struct StoredRow {
    pub resource_id: String,
    pub uid: Uuid,
    pub types: Vec<String>,
    pub environment: Option<String>,
    pub lifecycle: String,
    pub health: String,
    pub body: Value,
}

impl StoredRow {
    /// As matching sees it.
    ///
    /// # Errors
    /// When the row is not one that this service wrote.
    pub fn candidate(self) -> Result<Candidate, CorruptRow> {
        let id = self.resource_id.clone();
        self.read().map_err(|cause| CorruptRow { resource_id: id, cause })
    }

    fn read(self) -> Result<Candidate, Box<dyn std::error::Error + Send + Sync>> {
        let body: Body = serde_json::from_value(self.body)?;
        let mut types = self.types.iter().map(|name| name.parse::<DottedName>());
        let resource_type = types.next().ok_or("it has no type")??;
        Ok(Candidate {
            resource_id: self.resource_id.parse()?,
            uid: self.uid.into(),
            resource_type,
            ancestors: types.collect::<Result<_, _>>()?,
            environment: self.environment,
            labels: body.labels,
            lifecycle: serde_json::from_value(Value::String(self.lifecycle))?,
            health: serde_json::from_value(Value::String(self.health))?,
            capabilities: body
                .capabilities
                .into_iter()
                .map(|held| Capability {
                    capability: held.capability,
                    implies: held.implies,
                    attributes: held.attributes,
                })
                .collect(),
            edges: edges_of(body.edges)?,
            desired_generation: body.desired_generation,
            connection: body.connection,
        })
    }
}

/// Edges as matching sees them.
pub fn edges_of(rows: Vec<EdgeRow>) -> Result<Vec<Edge>, kernel::ResourceIdError> {
    rows.into_iter()
        .map(|row| {
            Ok(Edge {
                edge_type: row.edge_type,
                target: row.target.parse()?,
            })
        })
        .collect()
}

/// A row that this service cannot have written.
#[derive(Debug, thiserror::Error)]
#[error("the copy of {resource_id} cannot be read")]
pub struct CorruptRow {
    pub resource_id: String,
    #[source]
    pub cause: Box<dyn std::error::Error + Send + Sync>,
}
