//! What a preview reads of the copy: candidates selected in SQL, the places they are in, what depends on
//! them, and how fresh all that is.

use std::collections::{BTreeMap, BTreeSet};

use control_plane_plan::Freshness;
use control_plane_planning::{Candidate, Dependent, LeftOutBy, Place, SlotSelection, Snapshot};
use kernel::ResourceId;
use kernel::id::OrganizationId;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::row::{CorruptRow, EdgeRow, StoredRow, edges_of};
use super::store;

/// Candidates that are loaded at first: enough when nothing is preferred and they suffice.
const FIRST: i64 = 500;
/// Most candidates of one slot that are loaded at all.
pub const MOST: i64 = 20_000;
/// Refused candidates that are loaded to be explained.
const EXPLAINED: i64 = 100;
/// Longest way along edges to a place.
const HOPS: usize = 8;
/// Most dependents of a blast radius.
const DEPENDENTS: i64 = 1_000;

/// Why the copy could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("the store cannot be reached")]
    Store(#[from] sqlx::Error),
    #[error(transparent)]
    Corrupt(#[from] CorruptRow),
}

/// Whether everything that could fit is in the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    Whole,
    /// Only the first of at least one slot; enough only if every such slot is filled.
    First,
    /// A slot has more candidates than are ever loaded.
    CutOff,
}

/// The snapshot for some slots. With `whole`, all candidates that could fit are loaded, else only the first
/// of each slot for which that may be enough.
///
/// # Errors
/// The store does not answer, or holds what this service never wrote.
pub async fn snapshot(
    connection: &mut PgConnection,
    selections: &[SlotSelection],
    whole: bool,
) -> Result<(Snapshot, Completeness), ReadError> {
    let mut snapshot = Snapshot::default();
    let mut completeness = Completeness::Whole;
    let mut seen = BTreeSet::new();
    let mut edges: BTreeSet<&str> = BTreeSet::new();
    for selection in selections {
        let first = !whole && selection.enough.is_some_and(|enough| i64::from(enough) <= FIRST);
        let limit = if first { FIRST } else { MOST };
        let mut fitting = candidates(connection, selection, limit + 1).await?;
        if fitting.len() as i64 > limit {
            fitting.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            completeness = if first && completeness == Completeness::Whole {
                Completeness::First
            } else if first {
                completeness
            } else {
                Completeness::CutOff
            };
        }
        let (refused, left_out) = refused(connection, selection).await?;
        snapshot.left_out.insert(selection.slot.clone(), left_out);
        for candidate in fitting.into_iter().chain(refused) {
            if seen.insert(candidate.uid) {
                snapshot.candidates.push(candidate);
            }
        }
        edges.extend(selection.place_edges.iter().map(String::as_str));
    }
    snapshot.places = places(connection, &snapshot.candidates, &edges).await?;
    Ok((snapshot, completeness))
}

fn words<T: serde::Serialize>(values: &[T]) -> Vec<String> {
    let word = |value: &T| {
        serde_json::to_value(value)
            .ok()
            .and_then(|v| v.as_str().map(str::to_owned))
    };
    values.iter().filter_map(word).collect()
}

/// Those that pass everything that SQL can judge, by id.
async fn candidates(
    connection: &mut PgConnection,
    selection: &SlotSelection,
    limit: i64,
) -> Result<Vec<Candidate>, ReadError> {
    let rows = sqlx::query_file_as!(
        StoredRow,
        "src/projection/candidates.sql",
        selection.resource_type.as_str(),
        selection.environment,
        &words(&selection.lifecycle),
        &words(&selection.health),
        selection.connection,
        &words(&selection.capabilities),
        limit,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(StoredRow::candidate).collect::<Result<_, _>>()?)
}

/// The first of those that do not, to be explained, and how many more each constraint leaves out.
async fn refused(
    connection: &mut PgConnection,
    selection: &SlotSelection,
) -> Result<(Vec<Candidate>, BTreeMap<String, u64>), ReadError> {
    let rows = sqlx::query_file!(
        "src/projection/refused.sql",
        selection.resource_type.as_str(),
        selection.environment,
        &words(&selection.lifecycle),
        &words(&selection.health),
        selection.connection,
        &words(&selection.capabilities),
        EXPLAINED,
    )
    .fetch_all(connection)
    .await?;
    let mut explained = Vec::new();
    let mut left_out: BTreeMap<String, u64> = BTreeMap::new();
    for row in rows {
        let by = match row.reason.as_str() {
            "environment" => LeftOutBy::Environment,
            "lifecycle" => LeftOutBy::Lifecycle,
            "health" => LeftOutBy::Health,
            "connection" => LeftOutBy::Connection,
            capability => match capability.parse() {
                Ok(name) => LeftOutBy::Capability(name),
                Err(_) => continue,
            },
        };
        let Some(resource_id) = row.resource_id else {
            let counted = left_out.entry(selection.constraint(&by)).or_default();
            *counted += u64::try_from(row.count).unwrap_or(0);
            continue;
        };
        let stored = StoredRow {
            resource_id,
            uid: row.uid.unwrap_or_default(),
            types: row.types.unwrap_or_default(),
            environment: row.environment,
            lifecycle: row.lifecycle.unwrap_or_default(),
            health: row.health.unwrap_or_default(),
            body: row.body.unwrap_or_default(),
        };
        explained.push(stored.candidate()?);
    }
    Ok((explained, left_out))
}

/// Bound resources by uid, as they are now.
///
/// # Errors
/// As [`snapshot`].
pub async fn by_uid(connection: &mut PgConnection, uids: &[Uuid]) -> Result<Vec<Candidate>, ReadError> {
    let rows = sqlx::query_as!(
        StoredRow,
        r#"SELECT resource_id, uid, types, environment, lifecycle, health, body AS "body: Value"
           FROM projected_resources WHERE uid = ANY($1) AND NOT deleted ORDER BY resource_id"#,
        uids
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(StoredRow::candidate).collect::<Result<_, _>>()?)
}

async fn places(
    connection: &mut PgConnection,
    candidates: &[Candidate],
    edges: &BTreeSet<&str>,
) -> Result<BTreeMap<ResourceId, Place>, ReadError> {
    let mut places: BTreeMap<ResourceId, Place> = BTreeMap::new();
    if edges.is_empty() {
        return Ok(places);
    }
    let mut asked: BTreeSet<String> = BTreeSet::new();
    let targets = |all: &[control_plane_planning::Edge]| -> Vec<String> {
        let along = all.iter().filter(|edge| edges.contains(edge.edge_type.as_str()));
        along.map(|edge| edge.target.to_string()).collect()
    };
    let mut open: Vec<String> = candidates
        .iter()
        .flat_map(|candidate| targets(&candidate.edges))
        .collect();
    for _ in 0..HOPS {
        open.retain(|id| asked.insert(id.clone()));
        if open.is_empty() {
            break;
        }
        let rows = sqlx::query!(
            r#"SELECT resource_id, types, body -> 'edges' AS "edges!: Value"
               FROM projected_resources WHERE resource_id = ANY($1) AND NOT deleted"#,
            &open
        )
        .fetch_all(&mut *connection)
        .await?;
        open.clear();
        for row in rows {
            let (id, place) = place(row.resource_id, row.types, row.edges)?;
            open.extend(targets(&place.edges));
            places.insert(id, place);
        }
    }
    Ok(places)
}

fn place(resource_id: String, types: Vec<String>, edges: Value) -> Result<(ResourceId, Place), CorruptRow> {
    let read = || -> Result<_, Box<dyn std::error::Error + Send + Sync>> {
        let edges: Vec<EdgeRow> = serde_json::from_value(edges)?;
        let mut types = types.iter().map(|name| name.parse());
        let place = Place {
            resource_type: types.next().ok_or("it has no type")??,
            ancestors: types.collect::<Result<_, _>>()?,
            edges: edges_of(edges)?,
        };
        Ok((resource_id.parse()?, place))
    };
    read().map_err(|cause| CorruptRow {
        resource_id: resource_id.clone(),
        cause,
    })
}

/// What depends on these within three hops: what is hosted on them, part or member of them, or says that
/// it depends on them. The flag says that there is more.
///
/// # Errors
/// As [`snapshot`].
pub async fn dependents(
    connection: &mut PgConnection,
    resources: &[String],
) -> Result<(Vec<Dependent>, bool), ReadError> {
    let rows = sqlx::query_file!("src/projection/dependents.sql", resources, DEPENDENTS + 1)
        .fetch_all(connection)
        .await?;
    let partial = rows.len() as i64 > DEPENDENTS;
    let dependents = rows
        .into_iter()
        .take(usize::try_from(DEPENDENTS).unwrap_or(usize::MAX))
        .filter_map(|row| {
            Some(Dependent {
                resource_id: row.resource_id.parse().ok()?,
                resource_type: row.resource_type.parse().ok()?,
            })
        });
    Ok((dependents.collect(), partial))
}

/// How fresh the organization's copy is.
///
/// # Errors
/// The store does not answer.
pub async fn freshness(connection: &mut PgConnection, organization: OrganizationId) -> Result<Freshness, sqlx::Error> {
    let cursor = store::cursor(connection, organization).await?;
    Ok(cursor.map_or(
        Freshness {
            revision: 0,
            applied_at: None,
            lag_revisions: 0,
        },
        |cursor| Freshness {
            revision: cursor.revision,
            applied_at: cursor.applied_at,
            lag_revisions: (cursor.head - cursor.revision).max(0),
        },
    ))
}
