//! Who holds which resource, who waits for it, since when and why.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use control_plane_api::{ClaimHolder, ClaimView, ClaimWaiter};
use control_plane_plan::ClaimMode;
use kernel::ResourceId;
use kernel::id::{OperationId, ResourceUid};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::store::StoreError;
use crate::store::claim::mode;

struct Line {
    uid: Uuid,
    resource_id: String,
    operation_id: Uuid,
    run: i32,
    mode: String,
    held: bool,
    since: DateTime<Utc>,
    why: String,
}

/// Up to `limit` claimed resources with a uid after `after`, by uid.
pub async fn page(
    connection: &mut PgConnection,
    after: Option<ResourceUid>,
    limit: i64,
) -> Result<Vec<ClaimView>, StoreError> {
    let lines = sqlx::query_as!(
        Line,
        r#"SELECT c.uid, c.resource_id, c.operation_id, c.run, c.mode, c.held, c.since,
            o.pack || '/' || o.template || ' in ' || o.environment || ', asked for by ' || o.requester AS "why!"
        FROM claims c JOIN operations o ON o.id = c.operation_id
        WHERE c.uid IN (SELECT DISTINCT uid FROM claims WHERE $1::uuid IS NULL OR uid > $1 ORDER BY uid LIMIT $2)
        ORDER BY c.uid, c.held DESC, c.ticket"#,
        after.map(|uid| uid.0) as Option<Uuid>,
        limit,
    )
    .fetch_all(connection)
    .await
    .map_err(database::DatabaseError::from)?;
    let mut views: BTreeMap<Uuid, ClaimView> = BTreeMap::new();
    for line in lines {
        add(&mut views, line)?;
    }
    Ok(views.into_values().collect())
}

fn add(views: &mut BTreeMap<Uuid, ClaimView>, line: Line) -> Result<(), StoreError> {
    let resource_id: ResourceId = line
        .resource_id
        .parse()
        .map_err(|error| StoreError::corrupt("claim")(Box::new(error)))?;
    let mode = mode(&line.mode)?;
    let view = views.entry(line.uid).or_insert_with(|| ClaimView {
        resource_id,
        uid: ResourceUid(line.uid),
        holders: Vec::new(),
        waiters: Vec::new(),
    });
    if line.held {
        view.holders.push(ClaimHolder {
            operation_id: OperationId(line.operation_id),
            run: line.run as u32,
            mode,
            since: line.since,
            why: line.why,
        });
    } else {
        view.waiters.push(ClaimWaiter {
            operation_id: OperationId(line.operation_id),
            run: line.run as u32,
            mode,
            since: line.since,
            why: line.why,
            waits_for: in_the_way(view, mode),
        });
    }
    Ok(())
}

/// The first holder, or else waiter ahead, that conflicts.
fn in_the_way(view: &ClaimView, mode: ClaimMode) -> Option<OperationId> {
    let holders = view.holders.iter().map(|holder| (holder.operation_id, holder.mode));
    let waiters = view.waiters.iter().map(|waiter| (waiter.operation_id, waiter.mode));
    holders
        .chain(waiters)
        .find(|(_, other)| other.conflicts_with(mode))
        .map(|(operation, _)| operation)
}
