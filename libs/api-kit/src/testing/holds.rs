//! The rules that show on requests which are right: pages, streams that resume, writes for a version, writes
//! repeated, writes by a stranger.

use std::time::Duration;

use reqwest::header::ETAG;
use reqwest::{RequestBuilder, Response};
use serde_json::Value;

use super::Walk;
use super::checks::good;
use super::document::Operation;
use super::probe::{Expected, Probe};

/// How long a stream may say nothing until it counts as having nothing more to say.
const QUIET: Duration = Duration::from_secs(5);
/// A version that nothing of a test reaches.
const STALE: &str = "\"1000000\"";
/// Pages followed; enough to meet the border between two several times.
const PAGES: usize = 4;

/// One operation with what it must do.
pub(super) async fn operation(probe: &mut Probe, walk: &Walk, operation: &Operation) {
    if operation.is_public {
        return;
    }
    let is_excused = walk.excused.contains_key(&operation.template);
    if operation.is_object() && !is_excused {
        let is_known = walk.objects.contains_key(&operation.template);
        probe.check(&operation.name(), is_known, || {
            "the walker was given no object, so it shows nothing of it".to_owned()
        });
        if !is_known {
            return;
        }
    }
    if is_excused {
        return;
    }
    pages(probe, walk, operation).await;
    resume(probe, walk, operation).await;
    stale(probe, walk, operation).await;
    repeat(probe, walk, operation).await;
    stranger(probe, walk, operation).await;
}

async fn read(probe: &mut Probe, what: &str, request: RequestBuilder) -> Option<Value> {
    let response = probe.send(what, request).await?;
    let status = response.status();
    let body = response.text().await.unwrap_or_default();
    probe.check(what, status.is_success(), || {
        format!("expected success, got {status}: {body}")
    });
    let read = serde_json::from_str(&body).ok();
    probe.check(what, read.is_some() || !status.is_success(), || {
        "the body is no JSON".to_owned()
    });
    read
}

/// A list is read in pages that follow one another and repeat nothing, all with the revision of the first.
/// What answers with `items` is such a list.
async fn pages(probe: &mut Probe, walk: &Walk, operation: &Operation) {
    let takes = |name: &str| operation.query.iter().any(|known| known == name);
    let is_paged = takes("cursor") && takes("limit");
    if operation.method != "GET" || !(is_paged || operation.lists) {
        return;
    }
    let name = format!("{} page by page", operation.name());
    probe.check(&name, is_paged, || "a list without cursor or limit".to_owned());
    if !is_paged {
        return;
    }
    let mut cursor = None::<String>;
    let mut seen: Vec<Value> = Vec::new();
    let mut first = None::<i64>;
    for _ in 0..PAGES {
        let query = match &cursor {
            Some(cursor) => format!("?limit=1&cursor={cursor}"),
            None => "?limit=1".to_owned(),
        };
        let Some(page) = read(probe, &name, good(probe, walk, operation, &query)).await else {
            return;
        };
        let Some(items) = page["items"].as_array() else {
            return probe.check(&name, false, || "the page has no items".to_owned());
        };
        probe.check(&name, items.len() <= 1, || {
            format!("{} items on a page of 1", items.len())
        });
        let revision = page["revision"].as_i64();
        let has_first = revision.is_some_and(|revision| *first.get_or_insert(revision) == revision);
        probe.check(&name, has_first, || {
            format!("its revision is {revision:?}; that of the first page is {first:?}")
        });
        let is_new = items.iter().all(|item| !seen.contains(item));
        probe.check(&name, is_new, || "an item is on two pages".to_owned());
        seen.extend(items.iter().cloned());
        cursor = page["next_cursor"].as_str().map(str::to_owned);
        probe.check(&name, cursor.is_none() || !items.is_empty(), || {
            "a page without items says that there are more".to_owned()
        });
        if cursor.is_none() {
            return;
        }
    }
}

/// A stream gives ids, and goes on after the one that a client has.
async fn resume(probe: &mut Probe, walk: &Walk, operation: &Operation) {
    if !operation.streams {
        return;
    }
    let name = format!("{} after a cut", operation.name());
    let Some(response) = probe.send(&name, stream(probe, walk, operation, None)).await else {
        return;
    };
    let Some((id, data)) = first_event(response).await else {
        return probe.check(&name, false, || "the stream gives no event with an id".to_owned());
    };
    let again = stream(probe, walk, operation, Some(&id));
    let Some(response) = probe.send(&name, again).await else {
        return;
    };
    let status = response.status();
    probe.check(&name, status.is_success(), || {
        format!("an id that the stream gave is answered {status}")
    });
    let next = first_event(response).await;
    probe.check(&name, next.as_ref().is_none_or(|(_, next)| *next != data), || {
        format!("the event {id} is given again to who has it")
    });
}

/// The stream from its start, or after the event `last`.
fn stream(probe: &Probe, walk: &Walk, operation: &Operation, last: Option<&str>) -> RequestBuilder {
    let from_start = operation.query.iter().any(|known| known == "after");
    let query = if from_start && last.is_none() { "?after=0" } else { "" };
    let request = good(probe, walk, operation, query).header("accept", "text/event-stream");
    match last {
        Some(id) => request.header("last-event-id", id),
        None => request,
    }
}

/// The first event that has an id and data, or nothing when the stream ends, or says nothing, before.
async fn first_event(mut response: Response) -> Option<(String, String)> {
    let mut text = String::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            text.push_str(&String::from_utf8_lossy(&chunk));
            let events = text.split("\n\n").filter(|event| event.contains("data:"));
            for event in events {
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
                if let (Some(id), Some(data)) = (field("id:"), field("data:")) {
                    return Some((id.trim().to_owned(), data.trim().to_owned()));
                }
            }
        }
        None
    };
    tokio::time::timeout(QUIET, read).await.unwrap_or_default()
}

fn with_body(walk: &Walk, operation: &Operation, request: RequestBuilder) -> Option<RequestBuilder> {
    if operation.media_types.is_empty() {
        return Some(request);
    }
    Some(request.json(walk.bodies.get(&operation.name())?))
}

/// A write that is meant for another version is refused, and the reader is told which version there is.
async fn stale(probe: &mut Probe, walk: &Walk, operation: &Operation) {
    if !operation.takes_if_match {
        return;
    }
    let name = format!("{} for another version", operation.name());
    let request = good(probe, walk, operation, "").header("if-match", STALE);
    let Some(request) = with_body(walk, operation, request) else {
        return probe.check(&name, false, || "the walker was given no body".to_owned());
    };
    if walk.in_effect.contains(&operation.name()) {
        let status = answer(probe, &name, request).await.map(|answer| answer.0);
        probe.check(&name, status.is_some_and(|status| status < 300), || {
            format!("what is in effect already is answered {status:?}")
        });
    } else {
        let expected = Expected {
            codes: &["version_mismatch"],
            ..Expected::status(412)
        };
        probe.expect(&name, request, expected).await;
    }
    if operation.has_read {
        let what = format!("{} is read with its version", operation.template);
        let read = probe
            .request("GET", &walk.path(operation))
            .bearer_auth(walk.token(&identity::Role::ALL));
        if let Some(response) = probe.send(&what, read).await {
            let has_etag = response.headers().contains_key(ETAG);
            probe.check(&what, has_etag, || "it has no ETag".to_owned());
        }
    }
}

/// A write repeated under its key is answered as the first time.
async fn repeat(probe: &mut Probe, walk: &Walk, operation: &Operation) {
    if !operation.needs_idempotency_key {
        return;
    }
    let name = format!("{} repeated under its key", operation.name());
    let Some(body) = walk.bodies.get(&operation.name()) else {
        return probe.check(&name, false, || "the walker was given no body".to_owned());
    };
    let key = uuid::Uuid::now_v7().to_string();
    let sent = || {
        let path = walk.path(operation);
        let request = probe.request(&operation.method, &path);
        let request = request.bearer_auth(walk.token(&operation.roles));
        request.header("idempotency-key", &key).json(body)
    };
    let (first, second) = (sent(), sent());
    let Some(first) = answer(probe, &name, first).await else {
        return;
    };
    probe.check(&name, first.0 < 500, || {
        format!("it is answered {}: {}", first.0, first.1)
    });
    let second = answer(probe, &name, second).await;
    probe.check(&name, second.as_ref() == Some(&first), || {
        format!("first {first:?}, then {second:?}")
    });
}

async fn answer(probe: &mut Probe, what: &str, request: RequestBuilder) -> Option<(u16, String)> {
    let response = probe.send(what, request).await?;
    let status = response.status().as_u16();
    Some((status, response.text().await.unwrap_or_default()))
}

/// A write to an object of another organization finds nothing there.
async fn stranger(probe: &mut Probe, walk: &Walk, operation: &Operation) {
    let is_write = ["POST", "PUT"].contains(&operation.method.as_str());
    // What is put where nothing is makes the stranger's own object.
    let is_made = operation.method == "PUT" && operation.has_read;
    if !is_write || is_made || !operation.is_object() {
        return;
    }
    let name = format!("{} by another organization", operation.name());
    let request = probe
        .request(&operation.method, &walk.path(operation))
        .bearer_auth(walk.stranger(&operation.roles))
        .header("idempotency-key", uuid::Uuid::now_v7().to_string());
    match with_body(walk, operation, request) {
        Some(request) => probe.expect(&name, request, Expected::status(404)).await,
        None => probe.check(&name, false, || "the walker was given no body".to_owned()),
    }
}
