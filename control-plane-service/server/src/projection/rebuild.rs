//! Makes a copy anew from a snapshot, while it is read.
//!
//! Rows are written over in batches, by version, with the mark of a new generation; at the end, in one
//! transaction, what still has an older mark is removed and the position set to the snapshot's revision.
//! A rebuild that breaks off leaves a copy as good as before, and is begun again.

use futures::{StreamExt as _, TryStreamExt as _};
use kernel::id::OrganizationId;
use serde_json::Value;

use super::Projection;
use super::follower::FollowError;
use super::row::Projected;
use super::store::{self, Cursor, Parked};
use crate::points;

/// Resources written in one transaction.
const BATCH: usize = 1_000;

/// Rebuilds from a snapshot.
///
/// # Errors
/// The store or the source does not answer; the copy is as it was, or newer.
pub async fn rebuild(
    projection: &Projection,
    organization: OrganizationId,
    cursor: &Cursor,
) -> Result<(), FollowError> {
    let snapshot = projection.events.snapshot(organization).await?;
    let generation = cursor.generation + 1;
    let mut resources = snapshot.resources.try_chunks(BATCH);
    let mut count = 0;
    while let Some(chunk) = resources.next().await {
        let chunk = chunk.map_err(|error| error.1)?;
        count += chunk.len();
        write(projection, organization, generation, snapshot.revision, chunk).await?;
    }
    let mut tx = projection.database.begin(organization).await?;
    if !store::lock_at(&mut tx, organization, cursor.revision, cursor.generation).await? {
        return Ok(());
    }
    let gone = store::sweep(&mut tx, organization, generation, snapshot.revision).await?;
    store::rebuilt(&mut tx, organization, snapshot.revision, generation).await?;
    points::hit("control_plane.rebuild.before_commit");
    tx.commit().await?;
    points::hit("control_plane.rebuild.after_commit");
    tracing::info!(%organization, resources = count, gone, revision = snapshot.revision, "the copy of the catalog was rebuilt");
    projection.tell_applied();
    Ok(())
}

async fn write(
    projection: &Projection,
    organization: OrganizationId,
    generation: i32,
    revision: i64,
    states: Vec<Value>,
) -> Result<(), FollowError> {
    let mut rows = Vec::with_capacity(states.len());
    let mut parked = Vec::new();
    for state in states {
        let resource_id = state.get("resource_id").and_then(Value::as_str).map(str::to_owned);
        let fact = state.to_string();
        match Projected::of_state(state) {
            Ok(row) => rows.push(row),
            Err(error) => parked.push(Parked {
                resource_id: resource_id.unwrap_or_else(|| format!("revision {revision}")),
                revision,
                problem: error.to_string(),
                fact,
            }),
        }
    }
    let mut tx = projection.database.begin(organization).await?;
    store::write(&mut tx, organization, generation, &rows).await?;
    store::park(&mut tx, organization, &parked).await?;
    points::hit("control_plane.rebuild_batch.before_commit");
    tx.commit().await?;
    points::hit("control_plane.rebuild_batch.after_commit");
    Ok(())
}
