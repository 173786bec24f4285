//! Server-Sent Events: ids to resume from, heartbeats, and a final marker.
//!
//! A stream that is complete ends with an event `end`; one that is cut (restart, fault, shutdown)
//! does not, and the client resumes after the last id it has.

use core::convert::Infallible;
use core::str::FromStr;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::{Stream, StreamExt as _, stream};
use http::request::Parts;
use http::{HeaderValue, header};
use serde::Serialize;

use crate::{Closing, Problem};

/// Time between heartbeats on a quiet stream.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// One event.
#[derive(Debug, Clone)]
pub struct SseEvent {
    id: Option<String>,
    event: &'static str,
    data: String,
}

impl SseEvent {
    /// An event of the kind `event`, its data written as JSON on one line.
    ///
    /// # Errors
    /// The data is no JSON.
    pub fn new(event: &'static str, data: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self {
            id: None,
            event,
            data: serde_json::to_string(data)?,
        })
    }

    /// An event whose data is JSON already. Line breaks in it are kept.
    pub fn of_json(event: &'static str, json: impl Into<String>) -> Self {
        Self {
            id: None,
            event,
            data: json.into(),
        }
    }

    /// Where a client resumes after this event.
    #[must_use]
    pub fn id(mut self, id: impl core::fmt::Display) -> Self {
        self.id = Some(id.to_string());
        self
    }

    fn into_event(self) -> Event {
        let event = Event::default().event(self.event);
        let event = match self.id {
            // An id with a line break or NUL would break the frame.
            Some(id) if !id.contains(['\n', '\r', '\0']) => event.id(id),
            _ => event,
        };
        // The format knows no carriage return; in JSON text it is only white space.
        event.data(self.data.replace('\r', ""))
    }
}

/// Answers with a stream of events. When `events` ends, the final marker `end` follows; when it
/// gives a problem, an event `problem` follows and the stream stops; when the service closes, the
/// stream stops.
pub fn sse(events: impl Stream<Item = Result<SseEvent, Problem>> + Send + 'static, closing: Closing) -> Response {
    let end = Ok(SseEvent::of_json("end", "{}"));
    let framed = events
        .chain(stream::iter([end]))
        .scan(false, |failed, item| {
            let going_on = !*failed;
            *failed = item.is_err();
            core::future::ready(going_on.then_some(item))
        })
        .map(|item| {
            let event = item.unwrap_or_else(|problem| {
                SseEvent::of_json("problem", serde_json::to_string(&problem).unwrap_or_default())
            });
            Ok::<_, Infallible>(event.into_event())
        })
        .take_until(async move { closing.closed().await });
    let keep_alive = KeepAlive::new().interval(HEARTBEAT).text("heartbeat");
    let mut response = Sse::new(framed).keep_alive(keep_alive).into_response();
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The header `Last-Event-ID`: where a client resumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastEventId(pub Option<String>);

impl LastEventId {
    /// The id as the kind of position that this stream uses.
    ///
    /// # Errors
    /// 400 `invalid_last_event_id`.
    pub fn parse<T: FromStr>(&self) -> Result<Option<T>, Problem> {
        let parsed = self.0.as_deref().map(str::parse).transpose();
        parsed.map_err(|_| {
            Problem::new(400, "invalid_last_event_id", "The Last-Event-ID is not of this stream")
                .remedy("Send the id of the last event received, or none.")
        })
    }
}

impl<S: Sync> FromRequestParts<S> for LastEventId {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let header = parts.headers.get("last-event-id");
        let text = header.map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned());
        Ok(Self(text.filter(|text| !text.is_empty())))
    }
}
