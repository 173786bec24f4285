use std::sync::Arc;

use api_kit::{
    Caller, Closing, FieldError, LastEventId, Problem, SseEvent, StrictPath, StrictQuery, internal_problem, sse,
};
use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use execution_plane_api::{OutputEnd, OutputEvent, OutputQuery};
use futures::{StreamExt, TryStreamExt};
use kernel::id::{AttemptId, OrganizationId};

use super::{problems, wire};
use crate::core::{Core, Hot};
use crate::output::tail::{self, Tailed};
use crate::store::output_read::{self, Segment};
use crate::store::{StoreError, attempts};

/// The output of an attempt. With `Accept: text/event-stream` a live tail: events `chunk` (with
/// its sequence as id), one `final` when the attempt has ended,
/// and the marker `end`. Else the raw bytes that are durable now.
#[utoipa::path(get, path = "/v1/attempts/{attempt_id}/output", tag = "attempts",
    params(("attempt_id" = AttemptId, Path), OutputQuery,
        ("Last-Event-ID" = Option<u64>, Header, description = "Of a stream: the sequence of the last chunk received; goes before `after`.")),
    responses((status = 200, description = "Raw bytes, or a stream of events.", content(
        (Vec<u8> = "application/octet-stream"), (OutputEvent = "text/event-stream")))))]
pub async fn get_output(
    Shared(core): Shared<Arc<Core>>,
    caller: Caller,
    StrictPath(attempt_id): StrictPath<AttemptId>,
    StrictQuery(query): StrictQuery<OutputQuery>,
    last_event_id: LastEventId,
    closing: Closing,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let resume = last_event_id.parse::<u64>()?;
    let mut named = [resume, query.after].into_iter().flatten();
    if named.any(|after| i64::try_from(after).is_err()) {
        let detail = "no sequence is so large";
        return Err(Problem::invalid([FieldError::new("/after", "out_of_range", detail)]));
    }
    let organization = caller.organization;
    let known = attempts::get(&core.hot.api, organization, attempt_id).await;
    if known.map_err(problems::store)?.is_none() {
        return Err(problems::no_attempt(attempt_id));
    }
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if !accept.is_some_and(|accept| accept.contains("text/event-stream")) {
        return Ok(raw(
            core.hot.clone(),
            organization,
            attempt_id,
            query.after.unwrap_or(0),
        ));
    }
    let after = resume.or(query.after).unwrap_or(0);
    let events = tail::tail(core.hot.clone(), organization, attempt_id, after).map(event);
    Ok(sse(events, closing))
}

fn event(tailed: Result<Tailed, StoreError>) -> Result<SseEvent, Problem> {
    let event = match tailed.map_err(problems::store)? {
        Tailed::Chunk(chunk) => {
            let sequence = chunk.sequence;
            SseEvent::new("chunk", &wire::chunk(chunk)).map(|event| event.id(sequence))
        }
        Tailed::End {
            state,
            last_sequence,
            bytes,
        } => {
            let end = OutputEnd {
                state: wire::state(state),
                last_sequence,
                bytes,
            };
            SseEvent::new("final", &end)
        }
    };
    event.map_err(|error| internal_problem(&error))
}

/// All bytes that are durable, page by page.
fn raw(hot: Arc<Hot>, organization: OrganizationId, attempt: AttemptId, after: u64) -> Response {
    let pages = futures::stream::try_unfold((hot, after), move |(hot, after)| async move {
        let page = output_read::segments(&hot.api, organization, attempt, after).await?;
        let Some(last) = page.last().map(Segment::last_sequence) else {
            return Ok(None);
        };
        let mut bytes: Vec<Bytes> = Vec::new();
        for segment in &page {
            let data = tail::bytes_of(&hot, organization, attempt, segment).await?;
            let chunks = segment.chunks(&data)?;
            bytes.extend(
                chunks
                    .into_iter()
                    .filter(|chunk| chunk.sequence > after)
                    .map(|chunk| chunk.data),
            );
        }
        Ok::<_, StoreError>(Some((Bytes::from(bytes.concat()), (hot, last))))
    });
    let mut response = Body::from_stream(pages.map_err(std::io::Error::other)).into_response();
    let kind = HeaderValue::from_static("application/octet-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
