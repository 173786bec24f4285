//! A resource as a row.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use contracts::{EvidenceRef, HealthStatus, LifecycleStatus};
use kernel::DottedName;
use kernel::id::{CommandId, OperationId};
use resource_catalog_domain::{Edge, EdgeType, Health, Provenance, Provided, Resource};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_postgres::Row;
use uuid::Uuid;

use super::StoreError;

/// The columns of `resources`, in the order that [`ResourceRow::from_hot`] reads them.
pub const COLUMNS: &str = "r.organization_id, r.resource_id, r.uid, r.resource_type, r.type_ancestors, r.environment, \
    r.labels, r.annotations, r.lifecycle_status, r.health_status, r.health_reasons, r.health_observed_at, \
    r.desired_state, r.observed_state, r.connection, r.version, r.desired_generation, r.provided, r.edges, \
    r.created_at, r.updated_at";

/// One row of `resources`.
#[derive(Debug)]
pub struct ResourceRow {
    pub organization_id: Uuid,
    pub resource_id: String,
    pub uid: Uuid,
    pub resource_type: String,
    pub type_ancestors: Vec<String>,
    pub environment: Option<String>,
    pub labels: Value,
    pub annotations: Value,
    pub lifecycle_status: String,
    pub health_status: String,
    pub health_reasons: Vec<String>,
    pub health_observed_at: Option<DateTime<Utc>>,
    pub desired_state: Value,
    pub observed_state: Value,
    pub connection: Value,
    pub version: i64,
    pub desired_generation: i64,
    pub provided: Value,
    pub edges: Value,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

#[derive(Serialize, Deserialize)]
struct ProvidedRow {
    capability: DottedName,
    implies: Vec<DottedName>,
    attributes: Map<String, Value>,
    evidence: Vec<EvidenceRef>,
    #[serde(flatten)]
    provenance: ProvenanceRow,
    provided_at: DateTime<Utc>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ProvenanceRow {
    Operation {
        operation_id: OperationId,
        command_id: CommandId,
    },
    Observer {
        subject: String,
    },
}

impl ResourceRow {
    /// Reads [`COLUMNS`], beginning at column `at`.
    ///
    /// # Errors
    /// A column is not what it should be.
    pub fn from_hot(row: &Row, at: usize) -> Result<Self, StoreError> {
        Ok(Self {
            organization_id: row.try_get(at)?,
            resource_id: row.try_get(at + 1)?,
            uid: row.try_get(at + 2)?,
            resource_type: row.try_get(at + 3)?,
            type_ancestors: row.try_get(at + 4)?,
            environment: row.try_get(at + 5)?,
            labels: row.try_get(at + 6)?,
            annotations: row.try_get(at + 7)?,
            lifecycle_status: row.try_get(at + 8)?,
            health_status: row.try_get(at + 9)?,
            health_reasons: row.try_get(at + 10)?,
            health_observed_at: row.try_get(at + 11)?,
            desired_state: row.try_get(at + 12)?,
            observed_state: row.try_get(at + 13)?,
            connection: row.try_get(at + 14)?,
            version: row.try_get(at + 15)?,
            desired_generation: row.try_get(at + 16)?,
            provided: row.try_get(at + 17)?,
            edges: row.try_get(at + 18)?,
            created_at: row.try_get(at + 19)?,
            updated_at: row.try_get(at + 20)?,
        })
    }

    /// The resource.
    ///
    /// # Errors
    /// A value is not one that this code writes.
    pub fn into_resource(self) -> Result<Resource, StoreError> {
        let names = |texts: Vec<String>| -> Result<Vec<DottedName>, StoreError> {
            texts
                .iter()
                .map(|t| t.parse().map_err(|e| StoreError::unreadable("resource type", e)))
                .collect()
        };
        Ok(Resource {
            id: self
                .resource_id
                .parse()
                .map_err(|e| StoreError::unreadable("resource id", e))?,
            uid: self.uid.into(),
            organization: self.organization_id.into(),
            resource_type: self
                .resource_type
                .parse()
                .map_err(|e| StoreError::unreadable("resource type", e))?,
            ancestors: names(self.type_ancestors)?,
            environment: self.environment,
            labels: map_of_text(self.labels)?,
            annotations: map_of_text(self.annotations)?,
            lifecycle: lifecycle(&self.lifecycle_status)?,
            health: Health {
                status: health(&self.health_status)?,
                reasons: self.health_reasons,
                observed_at: self.health_observed_at,
            },
            desired: object(self.desired_state)?,
            observed: object(self.observed_state)?,
            connection: object(self.connection)?,
            version: self.version,
            desired_generation: self.desired_generation,
            provided: provided_from(self.provided)?,
            edges: edges_from(self.edges)?,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

fn map_of_text(value: Value) -> Result<BTreeMap<String, String>, StoreError> {
    serde_json::from_value(value).map_err(|e| StoreError::unreadable("labels", e))
}

fn object(value: Value) -> Result<Map<String, Value>, StoreError> {
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(StoreError::unreadable("state", "it is no object")),
    }
}

fn lifecycle(word: &str) -> Result<LifecycleStatus, StoreError> {
    let found = LifecycleStatus::ALL.into_iter().find(|s| s.as_str() == word);
    found.ok_or_else(|| StoreError::unreadable("lifecycle status", word))
}

fn health(word: &str) -> Result<HealthStatus, StoreError> {
    let found = HealthStatus::ALL.into_iter().find(|s| s.as_str() == word);
    found.ok_or_else(|| StoreError::unreadable("health status", word))
}

/// Capabilities for the column `provided`.
///
/// # Errors
/// Something has no JSON form.
pub fn provided_value(provided: &BTreeMap<DottedName, Provided>) -> Result<Value, StoreError> {
    let rows: Vec<ProvidedRow> = provided
        .iter()
        .map(|(name, held)| ProvidedRow {
            capability: name.clone(),
            implies: held.implies.clone(),
            attributes: held.attributes.clone(),
            evidence: held.evidence.clone(),
            provenance: match &held.provenance {
                Provenance::Operation { operation, command } => ProvenanceRow::Operation {
                    operation_id: *operation,
                    command_id: *command,
                },
                Provenance::Observer { subject } => ProvenanceRow::Observer {
                    subject: subject.clone(),
                },
            },
            provided_at: held.provided_at,
        })
        .collect();
    serde_json::to_value(rows).map_err(|e| StoreError::unreadable("capabilities", e))
}

fn provided_from(value: Value) -> Result<BTreeMap<DottedName, Provided>, StoreError> {
    let rows: Vec<ProvidedRow> =
        serde_json::from_value(value).map_err(|e| StoreError::unreadable("capabilities", e))?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let held = Provided {
                implies: row.implies,
                attributes: row.attributes,
                evidence: row.evidence,
                provenance: match row.provenance {
                    ProvenanceRow::Operation {
                        operation_id,
                        command_id,
                    } => Provenance::Operation {
                        operation: operation_id,
                        command: command_id,
                    },
                    ProvenanceRow::Observer { subject } => Provenance::Observer { subject },
                },
                provided_at: row.provided_at,
            };
            (row.capability, held)
        })
        .collect())
}

/// Edges for the column `edges`: pairs of type and target.
pub fn edges_value<'a>(edges: impl IntoIterator<Item = &'a Edge>) -> Value {
    edges
        .into_iter()
        .map(|edge| Value::from(vec![edge.edge_type.as_str(), edge.target.as_str()]))
        .collect()
}

fn edges_from(value: Value) -> Result<std::collections::BTreeSet<Edge>, StoreError> {
    let pairs: Vec<(String, kernel::ResourceId)> =
        serde_json::from_value(value).map_err(|e| StoreError::unreadable("edges", e))?;
    pairs
        .into_iter()
        .map(|(word, target)| {
            let edge_type = EdgeType::from_word(&word).ok_or_else(|| StoreError::unreadable("edge type", word))?;
            Ok(Edge { edge_type, target })
        })
        .collect()
}
