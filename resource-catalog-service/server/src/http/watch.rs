//! `/v1/watch/resources`

use std::time::Duration;

use api_kit::{Caller, Closing, LastEventId, Problem, SseEvent, StrictQuery, sse};
use axum::extract::State;
use axum::response::Response;
use contracts::{CatalogProjectionEvent, ProjectionEventType};
use kernel::id::OrganizationId;
use resource_catalog_api::WatchQuery;
use resource_catalog_domain::ResourceFilter;

use crate::catalog::Catalog;
use crate::feed::Changes;
use crate::http::query;
use crate::store::feed::FedChange;

/// Revisions read at once.
const CHUNK: u32 = 100;
/// How long one look at the feed waits; heartbeats go on meanwhile.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time between looks at a database that is away.
const PAUSE: Duration = Duration::from_secs(1);
/// The type of the last event of a resource that is no longer selected.
const LEFT: &str = "selection.left";

/// Streams the changes of selected resources as Server-Sent Events. The id of an event is its revision; resume with
/// `Last-Event-ID`.
///
/// A resource that stops being selected is told once more, as `selection.left`. 410 `revision_gone` when the feed does
/// not reach back so far.
#[utoipa::path(
    get,
    path = "/v1/watch/resources",
    tag = "events",
    params(WatchQuery, ("Last-Event-ID" = Option<i64>, Header, description = "The revision of the last event received; goes before `after`.")),
    responses((status = 200, description = "Events", body = CatalogProjectionEvent, content_type = "text/event-stream"))
)]
pub async fn watch_resources(
    State(catalog): State<Catalog>,
    caller: Caller,
    closing: Closing,
    last: LastEventId,
    StrictQuery(asked): StrictQuery<WatchQuery>,
) -> Result<Response, Problem> {
    let filter = filter(&asked)?;
    let resume: Option<i64> = last.parse()?;
    let from = match resume.or(asked.after) {
        Some(revision) if revision < 0 => {
            return Err(query::fault("/after", "invalid", "a revision is not negative"));
        }
        Some(revision) => revision,
        None => catalog.feed().head().await?,
    };
    // A position that is gone is an answer, not a broken stream.
    let first = catalog
        .feed()
        .read(caller.organization, from, CHUNK, Duration::ZERO)
        .await?;
    let organization = caller.organization;
    let events = async_stream::try_stream! {
        let mut read = first;
        loop {
            for change in &read.changes {
                for event in selected(&filter, change) {
                    yield event?;
                }
            }
            read = next(&catalog, organization, read.next_after).await?;
        }
    };
    Ok(sse(events, closing))
}

/// The changes after a revision, or none in the time. A database that is away for a while delays a watcher and does not
/// end its stream.
async fn next(catalog: &Catalog, organization: OrganizationId, after: i64) -> Result<Changes, Problem> {
    loop {
        match catalog.feed().read(organization, after, CHUNK, PATIENCE).await {
            Err(problem) if problem.status == 503 => tokio::time::sleep(PAUSE).await,
            read => return read,
        }
    }
}

fn filter(asked: &WatchQuery) -> Result<ResourceFilter, Problem> {
    Ok(ResourceFilter {
        resource_type: asked.resource_type.clone(),
        environment: asked.environment.clone(),
        selector: query::selector(asked.selector.as_deref())?,
        capability: query::capability(asked.capability.as_ref(), asked.capability_version.as_deref())?,
        health: asked.health,
        lifecycle: asked.lifecycle,
    })
}

/// What a watcher is told of a change. Only the last event of a revision carries the id, so that a stream cut between
/// two of them resumes before both.
fn selected(filter: &ResourceFilter, change: &FedChange) -> Vec<Result<SseEvent, Problem>> {
    let is = filter.matches(&change.member);
    let was = change.before.as_ref().map_or(is, |before| filter.matches(before));
    let events: Vec<CatalogProjectionEvent> = match (was, is) {
        (_, true) => change.events.clone(),
        (true, false) => change.events.first().map(left).into_iter().collect(),
        (false, false) => Vec::new(),
    };
    let count = events.len();
    events
        .iter()
        .enumerate()
        .map(|(index, event)| {
            let sent = SseEvent::new(word(&event.event_type), event).map_err(|e| api_kit::internal_problem(&e))?;
            Ok(if index + 1 == count {
                sent.id(change.revision)
            } else {
                sent
            })
        })
        .collect()
}

fn left(event: &CatalogProjectionEvent) -> CatalogProjectionEvent {
    let event_type = ProjectionEventType::Other(LEFT.to_owned());
    let event_id = event.uid.map_or(event.event_id, |uid| {
        CatalogProjectionEvent::id_of(uid, event.version, &event_type)
    });
    CatalogProjectionEvent {
        event_id,
        event_type,
        ..event.clone()
    }
}

const fn word(event_type: &ProjectionEventType) -> &'static str {
    match event_type {
        ProjectionEventType::ResourceUpdated => "resource.updated",
        ProjectionEventType::CapabilityProvided => "capability.provided",
        ProjectionEventType::ResourceHealthChanged => "resource.health_changed",
        ProjectionEventType::ResourceCreated => "resource.created",
        ProjectionEventType::ResourceDeleted => "resource.deleted",
        ProjectionEventType::CapabilityWithdrawn => "capability.withdrawn",
        ProjectionEventType::RelationshipChanged => "relationship.changed",
        // The only further word that this service says.
        ProjectionEventType::Other(_) => LEFT,
    }
}
