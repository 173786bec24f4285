//! Follows one organization's catalog: reads what came, applies it, says so.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use contracts::{CatalogProjectionEvent, ProjectionEventType};
use control_plane_ports::runtime::backoff;
use control_plane_ports::{EventBatch, EventSourceError, SourceEvent};
use database::DatabaseError;
use kernel::id::OrganizationId;
use sqlx::{Postgres, Transaction};
use tokio_util::sync::CancellationToken;

use super::row::Projected;
use super::store::{self, Cursor, Parked};
use super::verdict::{Verdict, judge};
use super::{Projection, rebuild};
use crate::points;

/// Most revisions read at once.
const BATCH: u32 = 500;
/// How long a read waits for something new.
const WAIT: Duration = Duration::from_secs(25);

/// Why a round came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    #[error("the store cannot be reached")]
    Store(#[from] DatabaseError),
    #[error(transparent)]
    Source(#[from] EventSourceError),
}

impl From<sqlx::Error> for FollowError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

/// What a batch comes to.
#[derive(Debug, Default, PartialEq)]
pub struct Changes {
    /// Each resource once, at its last version in the batch.
    pub rows: Vec<Projected>,
    pub parked: Vec<Parked>,
    pub gaps: i64,
}

/// Follows until `shutdown`. What does not answer is asked again, ever more patiently.
pub async fn run(projection: Arc<Projection>, organization: OrganizationId, shutdown: CancellationToken) {
    let mut failures = 0_u32;
    let mut wanted = projection.wanted.subscribe();
    loop {
        let round = tokio::select! {
            () = shutdown.cancelled() => return,
            // What the round has not committed it has not done. The sender lives in `projection`.
            Ok(()) = wanted.changed() => continue,
            round = round(&projection, organization, WAIT) => round,
        };
        let pause = match round {
            Ok(()) => {
                failures = 0;
                continue;
            }
            Err(error) => {
                if failures == 0 {
                    tracing::warn!(%organization, error = %error, "the copy of the catalog stands still");
                }
                failures = failures.saturating_add(1);
                backoff(failures, organization.as_uuid().as_bytes()[15])
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// One round: a rebuild when one is due, else one batch.
///
/// # Errors
/// The store or the source does not answer; nothing was changed then, or all of a batch.
pub async fn round(projection: &Projection, organization: OrganizationId, wait: Duration) -> Result<(), FollowError> {
    let mut tx = projection.database.begin(organization).await?;
    let cursor = store::cursor(&mut tx, organization).await?;
    tx.commit().await?;
    let Some(cursor) = cursor else { return Ok(()) };
    if cursor.rebuild_asked {
        return rebuild::rebuild(projection, organization, &cursor).await;
    }
    match projection.events.read(organization, cursor.revision, BATCH, wait).await {
        Ok(batch) => apply(projection, organization, &cursor, batch).await,
        Err(EventSourceError::PositionGone) => Ok(projection.ask_rebuild(organization).await?),
        Err(error) => Err(error.into()),
    }
}

async fn apply(
    projection: &Projection,
    organization: OrganizationId,
    cursor: &Cursor,
    batch: EventBatch,
) -> Result<(), FollowError> {
    let mut tx = projection.database.begin(organization).await?;
    if !store::lock_at(&mut tx, organization, cursor.revision, cursor.generation).await? {
        // Another follower was faster: what it applied is not applied again.
        return Ok(());
    }
    if batch.events.is_empty() && batch.next_after == cursor.revision {
        return heard(tx, organization, batch.head).await;
    }
    let ids: Vec<String> = batch.events.iter().filter_map(resource_of).collect();
    let known = store::versions(&mut tx, &ids).await?;
    let changes = changes(batch.events, known);
    store::write(&mut tx, organization, cursor.generation, &changes.rows).await?;
    store::park(&mut tx, organization, &changes.parked).await?;
    store::advance(&mut tx, organization, batch.next_after, batch.head, changes.gaps).await?;
    points::hit("control_plane.project.before_commit");
    tx.commit().await?;
    points::hit("control_plane.project.after_commit");
    for parked in &changes.parked {
        tracing::warn!(%organization, resource = parked.resource_id, problem = parked.problem, "a resource is set aside");
    }
    projection.tell_applied();
    Ok(())
}

async fn heard(
    mut tx: Transaction<'static, Postgres>,
    organization: OrganizationId,
    head: i64,
) -> Result<(), FollowError> {
    store::heard(&mut tx, organization, head).await?;
    Ok(tx.commit().await?)
}

fn resource_of(event: &SourceEvent) -> Option<String> {
    match event {
        SourceEvent::Fact(fact) => Some(fact.resource_id.to_string()),
        SourceEvent::Unreadable { resource_id, .. } => resource_id.clone(),
    }
}

/// What to write, by the versions that are known. Pure.
pub fn changes(events: Vec<SourceEvent>, mut known: HashMap<String, i64>) -> Changes {
    let mut rows: HashMap<String, Projected> = HashMap::new();
    let mut parked: HashMap<String, Parked> = HashMap::new();
    let mut gaps = 0;
    for event in events {
        let fact = match event {
            SourceEvent::Fact(fact) => *fact,
            SourceEvent::Unreadable {
                revision,
                resource_id,
                problem,
                raw,
            } => {
                // Without a resource there is nothing to set aside but the fact itself.
                let resource_id = resource_id.unwrap_or_else(|| format!("revision {}", revision.unwrap_or(0)));
                let one = Parked {
                    revision: revision.unwrap_or(0),
                    fact: raw.to_string(),
                    problem,
                    resource_id: resource_id.clone(),
                };
                parked.insert(resource_id, one);
                continue;
            }
        };
        let id = fact.resource_id.to_string();
        let verdict = judge(known.get(&id).copied(), fact.version);
        if verdict == Verdict::Old {
            continue;
        }
        match row_of(&fact) {
            Ok(row) => {
                gaps += i64::from(verdict == Verdict::Gap);
                known.insert(id.clone(), fact.version);
                parked.remove(&id);
                rows.insert(id, row);
            }
            Err(problem) => {
                let one = Parked {
                    resource_id: id.clone(),
                    revision: fact.revision.unwrap_or(0),
                    problem,
                    fact: serde_json::to_string(&fact).unwrap_or_default(),
                };
                parked.insert(id, one);
            }
        }
    }
    let mut rows: Vec<Projected> = rows.into_values().collect();
    rows.sort_by(|a, b| a.resource_id.cmp(&b.resource_id));
    let mut parked: Vec<Parked> = parked.into_values().collect();
    parked.sort_by(|a, b| a.resource_id.cmp(&b.resource_id));
    Changes { rows, parked, gaps }
}

fn row_of(fact: &CatalogProjectionEvent) -> Result<Projected, String> {
    if fact.event_type == ProjectionEventType::ResourceDeleted {
        let uid = fact.uid.map(|uid| uid.as_uuid());
        return Ok(Projected::tombstone(
            &fact.resource_id,
            uid,
            fact.version,
            &fact.resource_type,
        ));
    }
    Projected::of_fact(&fact.resource_id, fact.version, fact.payload.clone()).map_err(|error| error.to_string())
}
