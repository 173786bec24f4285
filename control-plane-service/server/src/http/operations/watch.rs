use std::time::Duration;

use api_kit::{Caller, Closing, LastEventId, Problem, SseEvent, StrictPath, database_problem, internal_problem, sse};
use axum::extract::State;
use axum::response::Response;
use control_plane_api::OperationEvent;
use futures::Stream;
use kernel::id::{OperationId, OrganizationId};

use crate::http::App;
use crate::http::fault::{no_operation, of_store};
use crate::read::events::{self, Standing};

/// Events in one reading.
const PAGE: i64 = 500;
/// How long news of another process may go unnoticed.
const SWEEP: Duration = Duration::from_secs(1);

/// An operation's events as they happen, from its first, or after `Last-Event-ID` (a sequence). The stream
/// ends, with the marker `end`, once the operation's run is over.
#[utoipa::path(get, path = "/v1/operations/{operation_id}/watch", tag = "operations",
    params(("operation_id" = OperationId, Path), ("Last-Event-ID" = Option<i64>, Header)),
    responses((status = 200, body = OperationEvent, content_type = "text/event-stream")))]
pub async fn watch_operation(
    caller: Caller,
    state: State<App>,
    path: StrictPath<OperationId>,
    last_event_id: LastEventId,
    closing: Closing,
) -> Result<Response, Problem> {
    let StrictPath(id) = path;
    let after = last_event_id.parse::<i64>()?.unwrap_or(0);
    let State(app) = state;
    // Before anything is sent: a watch of nothing is a 404, not an empty stream.
    read(&app, caller.organization, id, after, 0).await?;
    Ok(sse(follow(app, caller.organization, id, after), closing))
}

fn follow(
    app: App,
    organization: OrganizationId,
    id: OperationId,
    after: i64,
) -> impl Stream<Item = Result<SseEvent, Problem>> + Send {
    async_stream::try_stream! {
        let mut news = app.engine.newsroom.follow(id);
        let mut after = after;
        'rows: loop {
            let (events, standing) = read(&app, organization, id, after, PAGE).await?;
            for event in &events {
                after = event.sequence;
                let event = SseEvent::new("event", event).map_err(|error| internal_problem(&error))?;
                yield event.id(after);
            }
            if after < standing.last_event {
                continue;
            }
            if standing.is_over {
                return;
            }
            // What happens in this process is told whole. Whatever is missing is in the rows.
            while let Ok(Ok(news)) = tokio::time::timeout(SWEEP, news.recv()).await {
                let Some(events) = news.after(after) else { continue 'rows };
                for event in events {
                    let event = events::view(event.clone()).map_err(of_store)?;
                    after = event.sequence;
                    let event = SseEvent::new("event", &event).map_err(|error| internal_problem(&error))?;
                    yield event.id(after);
                }
                if news.ends_at(after) {
                    return;
                }
            }
        }
    }
}

async fn read(
    app: &App,
    organization: OrganizationId,
    id: OperationId,
    after: i64,
    limit: i64,
) -> Result<(Vec<OperationEvent>, Standing), Problem> {
    let mut tx = app.read(organization).await.map_err(|error| database_problem(&error))?;
    let standing = events::standing(&mut tx, id).await.map_err(of_store)?;
    let standing = standing.ok_or_else(|| no_operation(id))?;
    let events = events::page(&mut tx, id, after, limit).await.map_err(of_store)?;
    Ok((events, standing))
}
