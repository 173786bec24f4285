//! The catalog's facts from its own feed, over HTTP: the embedded twin of a Kafka consumer.
//!
//! Events are taken apart one by one, so that one that cannot be read hides no other.

use std::time::Duration;

use async_trait::async_trait;
use client_kit::{Client, ClientError};
use control_plane_ports::events::{EventBatch, EventSource, EventSourceError, Snapshot, SourceEvent};
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use kernel::id::OrganizationId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How much longer than its wait a long poll may take.
const ANSWER_TIME: Duration = Duration::from_secs(15);
/// Longest line of a snapshot: the largest resource with room for its envelope.
const MAX_LINE: usize = 2 << 20;

/// Reads `/v1/feed` and `/v1/snapshot` of a catalog.
#[derive(Debug, Clone)]
pub struct FeedSource {
    catalog: Client,
}

impl FeedSource {
    /// Reads through `catalog`, whose tokens may be made for any organization.
    #[must_use]
    pub const fn new(catalog: Client) -> Self {
        Self { catalog }
    }
}

#[derive(Serialize)]
struct FeedQuery {
    after: i64,
    limit: u32,
    wait_seconds: u64,
}

#[derive(Deserialize)]
struct RawPage {
    events: Vec<Value>,
    next_after: i64,
    head: i64,
}

fn failed(error: ClientError) -> EventSourceError {
    match error.code() {
        Some("revision_gone") => EventSourceError::PositionGone,
        _ if error.is_transient() => EventSourceError::Unreachable(Box::new(error)),
        _ => EventSourceError::Refused(Box::new(error)),
    }
}

fn event_of(raw: Value) -> SourceEvent {
    match serde_json::from_value(raw.clone()) {
        Ok(fact) => SourceEvent::Fact(Box::new(fact)),
        Err(error) => SourceEvent::Unreadable {
            revision: raw.get("revision").and_then(Value::as_i64),
            resource_id: raw.get("resource_id").and_then(Value::as_str).map(str::to_owned),
            problem: error.to_string(),
            raw,
        },
    }
}

#[async_trait]
impl EventSource for FeedSource {
    async fn read(
        &self,
        organization: OrganizationId,
        after: i64,
        limit: u32,
        wait: Duration,
    ) -> Result<EventBatch, EventSourceError> {
        let query = FeedQuery {
            after,
            limit,
            wait_seconds: wait.as_secs(),
        };
        let call = self.catalog.acting_for(organization).get("/v1/feed").query(&query);
        let page: RawPage = call.within(wait + ANSWER_TIME).json().await.map_err(failed)?;
        if page.head < after {
            return Err(EventSourceError::PositionGone);
        }
        Ok(EventBatch {
            events: page.events.into_iter().map(event_of).collect(),
            next_after: page.next_after,
            head: page.head,
        })
    }

    async fn snapshot(&self, organization: OrganizationId) -> Result<Snapshot, EventSourceError> {
        let call = self.catalog.acting_for(organization).get("/v1/snapshot");
        let response = call.within(Duration::MAX).send().await.map_err(failed)?;
        let unreachable = |error| EventSourceError::Unreachable(Box::new(error));
        let mut lines = Box::pin(lines(response.bytes_stream().map_err(unreachable)));
        let first = lines.next().await.unwrap_or_else(|| Err(broken("it is empty")))?;
        let revision = match (first.get("kind").and_then(Value::as_str), first.get("revision")) {
            (Some("head"), Some(revision)) => revision.as_i64(),
            _ => None,
        };
        let revision = revision.ok_or_else(|| broken("it does not begin with its revision"))?;
        Ok(Snapshot {
            revision,
            resources: Box::pin(resources(lines)),
        })
    }
}

fn broken(problem: &'static str) -> EventSourceError {
    EventSourceError::Refused(format!("the snapshot cannot be read: {problem}").into())
}

/// The resources of a snapshot; an error when it breaks off before its end.
fn resources(
    mut lines: impl Stream<Item = Result<Value, EventSourceError>> + Unpin + Send,
) -> impl Stream<Item = Result<Value, EventSourceError>> + Send {
    async_stream::try_stream! {
        let mut count = 0_u64;
        loop {
            let mut line = lines.next().await.unwrap_or_else(|| Err(broken("it breaks off")))?;
            match line.get("kind").and_then(Value::as_str) {
                Some("resource") => {
                    count += 1;
                    yield line.get_mut("resource").map(Value::take).unwrap_or_default();
                }
                Some("end") => {
                    if line.get("resources").and_then(Value::as_u64) != Some(count) {
                        Err(broken("it lacks resources"))?;
                    }
                    break;
                }
                // A later version may say more.
                _ => {}
            }
        }
    }
}

fn lines<B: AsRef<[u8]> + Send>(
    chunks: impl Stream<Item = Result<B, EventSourceError>> + Send,
) -> impl Stream<Item = Result<Value, EventSourceError>> + Send {
    async_stream::try_stream! {
        let mut chunks = std::pin::pin!(chunks);
        let mut rest: Vec<u8> = Vec::new();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk?;
            let mut parts = chunk.as_ref().split(|byte| *byte == b'\n');
            rest.extend_from_slice(parts.next().unwrap_or_default());
            for part in parts {
                yield line_of(&rest)?;
                rest.clear();
                rest.extend_from_slice(part);
            }
            if rest.len() > MAX_LINE {
                Err(broken("a line is too long"))?;
            }
        }
        if !rest.is_empty() {
            yield line_of(&rest)?;
        }
    }
}

fn line_of(bytes: &[u8]) -> Result<Value, EventSourceError> {
    serde_json::from_slice(bytes).map_err(|error| EventSourceError::Refused(Box::new(error)))
}
