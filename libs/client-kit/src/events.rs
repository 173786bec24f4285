//! Server-sent events that survive a broken connection: the stream resumes after the last event seen.

use std::time::Duration;

use eventsource_stream::Eventsource as _;
use futures::{Stream, StreamExt as _};
use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderName, HeaderValue};
use serde::de::DeserializeOwned;

use crate::client::Client;
use crate::error::ClientError;
use crate::retry::Retries;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEvent {
    /// Resume after this; empty when the event has none.
    pub id: String,
    /// What kind; `message` when the service does not say.
    pub event: String,
    /// The payload, JSON in every stream of the platform.
    pub data: String,
}

impl ServerEvent {
    /// Decodes the payload.
    ///
    /// # Errors
    /// [`ClientError::Answer`].
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        serde_json::from_str(&self.data).map_err(|source| ClientError::Answer {
            url: format!("event {}", self.event),
            source: source.into(),
        })
    }
}

const PAUSES: Retries = Retries {
    tries: u32::MAX,
    first_pause: Duration::from_millis(100),
    longest_pause: Duration::from_secs(5),
};

impl Client {
    /// The events of `path` (with its query, if any) after `last_event_id`. Broken connections are
    /// resumed for as long as the stream is polled; it ends with the event named `last` (which is
    /// yielded), or with the first answered error: refused at the door, or told in the stream by an
    /// event `problem`.
    pub fn events<'a>(
        &self,
        path: &'a str,
        last_event_id: Option<String>,
        last: &'a str,
    ) -> impl Stream<Item = Result<ServerEvent, ClientError>> + Send + use<'a> {
        let client = self.with_retries(Retries::NONE);
        async_stream::stream! {
            let mut resume = last_event_id;
            let mut failed = 0_u32;
            loop {
                let call = client.call(Method::GET, path).within(Duration::MAX)
                    .header(ACCEPT, HeaderValue::from_static("text/event-stream"));
                let call = match resume.as_deref().map(HeaderValue::from_str) {
                    Some(Ok(id)) => call.header(HeaderName::from_static("last-event-id"), id),
                    _ => call,
                };
                match call.send().await {
                    Ok(response) => {
                        let mut events = response.bytes_stream().eventsource();
                        while let Some(event) = events.next().await {
                            let Ok(event) = event else { break };
                            failed = 0;
                            if !event.id.is_empty() {
                                resume = Some(event.id.clone());
                            }
                            match problem_of(&event) {
                                // The service gave up for the moment: resumed like a cut.
                                Some(error) if error.is_transient() => break,
                                Some(error) => {
                                    yield Err(error);
                                    return;
                                }
                                None => {}
                            }
                            let ended = event.event == last;
                            yield Ok(ServerEvent { id: event.id, event: event.event, data: event.data });
                            if ended {
                                return;
                            }
                        }
                    }
                    Err(error) if error.is_transient() => {}
                    Err(error) => {
                        yield Err(error);
                        return;
                    }
                }
                failed = failed.saturating_add(1);
                tokio::time::sleep(PAUSES.pause(failed)).await;
            }
        }
    }
}

/// A stream that fails midway says so by an event `problem`.
fn problem_of(event: &eventsource_stream::Event) -> Option<ClientError> {
    if event.event != "problem" {
        return None;
    }
    Some(match serde_json::from_str(&event.data) {
        Ok(problem) => ClientError::Problem(Box::new(problem)),
        Err(source) => ClientError::Answer {
            url: "an event stream".to_owned(),
            source: source.into(),
        },
    })
}
