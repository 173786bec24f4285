use std::time::Duration;

use api_kit::{Caller, Closing, FieldError, Problem, StrictQuery, database_problem, internal_problem};
use axum::Json;
use axum::extract::State;
use control_plane_api::{FeedEvent, FeedPage, FeedQuery};
use identity::Role;
use outbox::FeedError;

use super::App;
use super::operations::list::limit;

const MAX_WAIT: u32 = 30;

/// Facts about operations in their total order, waiting for the first one as long as asked.
/// A service that reads on from a revision has what comes before it: that may be reaped.
#[utoipa::path(get, path = "/v1/feed", tag = "feed", params(FeedQuery), responses((status = 200, body = FeedPage)))]
pub async fn read_feed(
    caller: Caller,
    state: State<App>,
    query: StrictQuery<FeedQuery>,
    closing: Closing,
) -> Result<Json<FeedPage>, Problem> {
    let StrictQuery(query) = query;
    let wait = query.wait_seconds.unwrap_or(0);
    if wait > MAX_WAIT || query.after < 0 {
        let fault = FieldError::new(
            "/wait_seconds",
            "out_of_range",
            "wait_seconds is 0 to 30, after at least 0",
        );
        return Err(Problem::invalid([fault]));
    }
    let limit = limit(query.limit)?;
    let patience = Duration::from_secs(wait.into());
    let page = tokio::select! {
        page = state.feed.read_or_wait(query.after, limit, caller.organization, patience) => page,
        () = closing.closed() => state.feed.read(query.after, limit, caller.organization).await,
    };
    let page = page.map_err(problem)?;
    if caller.has_role(Role::Service) {
        let (subject, organization) = (&caller.subject, caller.organization);
        let noted = state.feed.reads_on(subject, organization, query.after).await;
        noted.map_err(|error| database_problem(&error))?;
    }
    Ok(Json(FeedPage {
        events: page.events.into_iter().map(event).collect::<Result<_, _>>()?,
        next_after: page.next_after,
        head: page.head,
    }))
}

fn event(event: outbox::FeedEvent) -> Result<FeedEvent, Problem> {
    Ok(FeedEvent {
        event_id: event.event_id,
        revision: event.revision,
        event_type: event.kind,
        operation_id: event
            .key
            .parse()
            .map_err(|error: uuid::Error| internal_problem(&error))?,
        version: event.version,
        occurred_at: event.occurred_at,
        payload: serde_json::from_str(event.payload.get()).map_err(|error| internal_problem(&error))?,
    })
}

fn problem(error: FeedError) -> Problem {
    match error {
        FeedError::TooFarBehind { floor } => {
            Problem::new(410, "revision_gone", "The feed no longer reaches back so far")
                .detail(format!("The feed begins after revision {floor}."))
                .remedy("Read the lists again and go on from their revision.")
                .with("floor", floor)
        }
        FeedError::Ahead { head } => {
            Problem::conflict("revision_ahead", format!("The feed ends at revision {head}.")).with("head", head)
        }
        FeedError::Database(error) => database_problem(&error),
    }
}
