//! The change record of a version, as it waits in the outbox and stands in the feed.

use std::collections::BTreeMap;

use contracts::{CatalogProjectionEvent, HealthStatus, LifecycleStatus, ProjectionEventType};
use database::OrgTransaction;
use kernel::id::CommandId;
use kernel::{DottedName, SoftwareVersion};
use outbox::{FeedEvent, NewEvent};
use resource_catalog_api::Resource;
use resource_catalog_domain::Membership;
use serde::{Deserialize, Serialize};

use super::StoreError;
use super::write::Write;
use crate::wire;

/// The kind of every record: what it yields is in it.
const KIND: &str = "resource.change";

/// What the outbox keeps of one version.
#[derive(Debug, Serialize, Deserialize)]
struct ChangeRecord {
    events: Vec<ProjectionEventType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prev_version: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command_id: Option<CommandId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<MembershipRecord>,
    resource: Resource,
}

/// How the resource was selected before, where that changed. Its type cannot have.
#[derive(Debug, Serialize, Deserialize)]
struct MembershipRecord {
    #[serde(default)]
    environment: Option<String>,
    labels: BTreeMap<String, String>,
    lifecycle_status: LifecycleStatus,
    health_status: HealthStatus,
    capabilities: BTreeMap<DottedName, Vec<Option<SoftwareVersion>>>,
}

/// One version as readers of the feed get it.
#[derive(Debug, Clone)]
pub struct FedChange {
    pub revision: i64,
    /// One to three, or more where further types apply; all of this version and revision.
    pub events: Vec<CatalogProjectionEvent>,
    /// How the resource is selected now.
    pub member: Membership,
    /// How it was before, where that changed.
    pub before: Option<Membership>,
}

/// Puts the change record of each version into the outbox.
///
/// # Errors
/// The database failed.
pub async fn append(transaction: &OrgTransaction, writes: &[Write]) -> Result<(), StoreError> {
    let events = writes.iter().map(new_event).collect::<Result<Vec<_>, _>>()?;
    outbox::append(transaction, &events).await?;
    Ok(())
}

fn new_event(write: &Write) -> Result<NewEvent, StoreError> {
    let next = &write.change.next;
    let record = ChangeRecord {
        events: write.change.events.clone(),
        prev_version: write.before.as_ref().map(|before| before.version),
        command_id: write.cause.command,
        before: write.change.before.as_ref().map(|before| MembershipRecord {
            environment: before.environment.clone(),
            labels: before.labels.clone(),
            lifecycle_status: before.lifecycle,
            health_status: before.health,
            capabilities: before.capabilities.clone(),
        }),
        resource: wire::resource::resource(next),
    };
    Ok(NewEvent {
        organization: next.organization,
        key: next.id.to_string(),
        version: next.version,
        kind: KIND.to_owned(),
        event_id: CatalogProjectionEvent::id_of(next.uid, next.version, &ProjectionEventType::ResourceUpdated),
        payload: serde_json::to_string(&record).map_err(|e| StoreError::unreadable("change record", e))?,
        occurred_at: next.updated_at,
        traceparent: write.cause.traceparent.clone(),
    })
}

/// Reads a record of the feed.
///
/// # Errors
/// It is not what [`append`] writes.
pub fn read(fed: &FeedEvent) -> Result<FedChange, StoreError> {
    let record: ChangeRecord =
        serde_json::from_str(fed.payload.get()).map_err(|e| StoreError::unreadable("change record", e))?;
    let resource = &record.resource;
    let payload = wire::resource::payload(resource).map_err(|e| StoreError::unreadable("change record", e))?;
    let event = |event_type: &ProjectionEventType| CatalogProjectionEvent {
        event_id: CatalogProjectionEvent::id_of(resource.uid, resource.version, event_type),
        event_type: event_type.clone(),
        resource_id: resource.resource_id.clone(),
        resource_type: resource.resource_type.clone(),
        organization_id: resource.organization_id,
        version: resource.version,
        payload: payload.clone(),
        occurred_at: fed.occurred_at,
        uid: Some(resource.uid),
        prev_version: record.prev_version,
        revision: Some(fed.revision),
        command_id: record.command_id,
        traceparent: fed.traceparent.clone(),
    };
    let events = record.events.iter().map(event).collect();
    let member = wire::resource::membership(resource);
    let before = record.before.map(|before| Membership {
        resource_type: member.resource_type.clone(),
        ancestors: member.ancestors.clone(),
        environment: before.environment,
        labels: before.labels,
        lifecycle: before.lifecycle_status,
        health: before.health_status,
        capabilities: before.capabilities,
    });
    Ok(FedChange {
        revision: fed.revision,
        events,
        member,
        before,
    })
}
