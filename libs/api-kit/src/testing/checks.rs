//! The rules, each as what an operation must refuse.

use std::collections::BTreeSet;

use identity::Role;
use reqwest::RequestBuilder;
use reqwest::header::CONTENT_TYPE;

use super::Walk;
use super::document::Operation;
use super::probe::{Expected, Probe};

/// Largest body that is really sent.
const SENT: usize = 16 * 1024 * 1024;

/// One operation with what it must refuse.
pub(super) async fn operation(probe: &mut Probe, walk: &Walk, operation: &Operation) {
    if operation.is_public {
        return;
    }
    authentication(probe, walk, operation).await;
    query(probe, walk, operation).await;
    headers(probe, walk, operation).await;
    if !operation.media_types.is_empty() {
        body(probe, walk, operation).await;
        size(probe, walk, operation).await;
    }
    organizations(probe, walk, operation).await;
}

/// A request that is right but for what the caller changes.
pub(super) fn good(probe: &Probe, walk: &Walk, operation: &Operation, query: &str) -> RequestBuilder {
    let path = format!("{}{query}", walk.path(operation));
    let request = probe
        .request(&operation.method, &path)
        .bearer_auth(walk.token(&operation.roles));
    if operation.needs_idempotency_key {
        request.header("idempotency-key", uuid::Uuid::now_v7().to_string())
    } else {
        request
    }
}

async fn authentication(probe: &mut Probe, walk: &Walk, operation: &Operation) {
    let name = operation.name();
    let path = walk.path(operation);
    let bare = probe.request(&operation.method, &path);
    let missing = Expected {
        codes: &["token_missing"],
        ..Expected::status(401)
    };
    probe.expect(&format!("{name} without a token"), bare, missing).await;
    let garbage = probe.request(&operation.method, &path).bearer_auth("not.a.token");
    let invalid = Expected {
        codes: &["token_invalid"],
        ..Expected::status(401)
    };
    probe
        .expect(&format!("{name} with a false token"), garbage, invalid)
        .await;
    let others: Vec<Role> = Role::ALL
        .into_iter()
        .filter(|role| !operation.roles.contains(role))
        .collect();
    if !others.is_empty() {
        let wrong = probe.request(&operation.method, &path).bearer_auth(walk.token(&others));
        probe
            .expect(&format!("{name} with other roles"), wrong, Expected::status(403))
            .await;
    }
}

async fn query(probe: &mut Probe, walk: &Walk, operation: &Operation) {
    let name = operation.name();
    if operation.query.is_empty() {
        return;
    }
    let unknown = good(probe, walk, operation, "?walk_unknown=1");
    let expected = Expected {
        error: Some(("/walk_unknown", "unknown_parameter")),
        ..Expected::status(422)
    };
    probe
        .expect(&format!("{name} with an unknown parameter"), unknown, expected)
        .await;
    if operation.query.iter().any(|known| known == "limit") {
        for limit in ["0", "1001", "-1", "many"] {
            let request = good(probe, walk, operation, &format!("?limit={limit}"));
            let expected = Expected {
                error: Some(("/limit", "invalid")),
                ..Expected::status(422)
            };
            probe
                .expect(&format!("{name} with limit={limit}"), request, expected)
                .await;
        }
    }
    if operation.query.iter().any(|known| known == "cursor") {
        let request = good(probe, walk, operation, "?cursor=walk");
        let expected = Expected {
            error: Some(("/cursor", "invalid_cursor")),
            ..Expected::status(422)
        };
        probe
            .expect(&format!("{name} with a false cursor"), request, expected)
            .await;
    }
}

async fn headers(probe: &mut Probe, walk: &Walk, operation: &Operation) {
    let name = operation.name();
    if operation.needs_idempotency_key {
        let request = probe
            .request(&operation.method, &walk.path(operation))
            .bearer_auth(walk.token(&operation.roles));
        let expected = Expected {
            codes: &["idempotency_key_required"],
            ..Expected::status(400)
        };
        probe
            .expect(&format!("{name} without an Idempotency-Key"), request, expected)
            .await;
    }
    if operation.takes_if_match {
        let request = good(probe, walk, operation, "").header("if-match", "walk");
        let request = if operation.takes_json() {
            json(request, "{}")
        } else {
            request
        };
        let expected = Expected {
            codes: &["invalid_if_match"],
            ..Expected::status(400)
        };
        probe
            .expect(&format!("{name} with a false If-Match"), request, expected)
            .await;
    }
    if operation.streams {
        let request = good(probe, walk, operation, "").header("last-event-id", "walk no id");
        let expected = Expected {
            codes: &["invalid_last_event_id"],
            ..Expected::status(400)
        };
        probe
            .expect(&format!("{name} with a false Last-Event-ID"), request, expected)
            .await;
    }
}

fn json(request: RequestBuilder, body: &str) -> RequestBuilder {
    request.header(CONTENT_TYPE, "application/json").body(body.to_owned())
}

async fn body(probe: &mut Probe, walk: &Walk, operation: &Operation) {
    let name = operation.name();
    let is_any = operation
        .media_types
        .iter()
        .any(|kind| kind == "application/octet-stream");
    if !is_any {
        let request = good(probe, walk, operation, "")
            .header(CONTENT_TYPE, "text/plain")
            .body("{}");
        probe
            .expect(&format!("{name} with text/plain"), request, Expected::status(415))
            .await;
    }
    if !operation.takes_json() {
        return;
    }
    for malformed in ["{", "", "{\"a\":1}}", "\u{feff}{}"] {
        let request = json(good(probe, walk, operation, ""), malformed);
        let expected = Expected {
            codes: &["malformed_json"],
            ..Expected::status(400)
        };
        probe
            .expect(&format!("{name} with {malformed:?}"), request, expected)
            .await;
    }
    let twice = json(good(probe, walk, operation, ""), "{\"walk\":1,\"walk\":1}");
    let expected = Expected {
        error: Some(("/walk", "duplicate_field")),
        ..Expected::status(422)
    };
    probe
        .expect(&format!("{name} with a field given twice"), twice, expected)
        .await;
    if walk.open_bodies.contains(&name) {
        return;
    }
    let (text, prefix) = match operation.takes_array {
        true => ("[{\"walk_one\":1,\"walk~/two\":{}}]", "/0"),
        false => ("{\"walk_one\":1,\"walk~/two\":{}}", ""),
    };
    for field in ["/walk_one", "/walk~0~1two"] {
        let pointer = format!("{prefix}{field}");
        let request = json(good(probe, walk, operation, ""), text);
        let expected = Expected {
            error: Some((&pointer, "unknown_field")),
            ..Expected::status(422)
        };
        probe
            .expect(&format!("{name} with two unknown fields"), request, expected)
            .await;
    }
}

async fn size(probe: &mut Probe, walk: &Walk, operation: &Operation) {
    let name = format!("{} with too large a body", operation.name());
    let Some(limit) = operation.body_limit else {
        probe.check(&name, false, || "the document states no x-body-limit".to_owned());
        return;
    };
    let kind = operation.media_types.first().map_or("application/json", String::as_str);
    if limit < SENT {
        let request = good(probe, walk, operation, "")
            .header(CONTENT_TYPE, kind)
            .body(vec![b' '; limit + 1]);
        let expected = Expected {
            codes: &["body_too_large"],
            ..Expected::status(413)
        };
        probe.expect(&name, request, expected).await;
        return;
    }
    let head = format!(
        "{} {} HTTP/1.1\r\nhost: walk\r\nauthorization: Bearer {}\r\nidempotency-key: walk\r\n\
         content-type: {kind}\r\ncontent-length: {}\r\n\r\n",
        operation.method,
        walk.path(operation),
        walk.token(&operation.roles),
        limit + 1,
    );
    let status = probe.status_of_head(&head).await;
    probe.check(&name, status == Some(413), || format!("expected 413, got {status:?}"));
}

/// An object answers its owner, and is not there for anyone else.
async fn organizations(probe: &mut Probe, walk: &Walk, operation: &Operation) {
    if !operation.is_object() || !["GET", "DELETE"].contains(&operation.method.as_str()) {
        return;
    }
    let name = operation.name();
    let is_known = walk.objects.contains_key(&operation.template);
    if is_known && operation.method == "GET" && !operation.streams {
        let what = format!("{name} by its owner");
        let request = good(probe, walk, operation, "");
        if let Some(response) = probe.send(&what, request).await {
            let status = response.status();
            probe.check(&what, status.is_success(), || {
                format!("the object named to the walker gives {status}")
            });
        }
    }
    let request = probe
        .request(&operation.method, &walk.path(operation))
        .bearer_auth(walk.stranger(&operation.roles));
    let request = match operation.needs_idempotency_key {
        true => request.header("idempotency-key", uuid::Uuid::now_v7().to_string()),
        false => request,
    };
    probe
        .expect(
            &format!("{name} by another organization"),
            request,
            Expected::status(404),
        )
        .await;
}

/// Unknown paths and wrong methods.
pub(super) async fn paths(probe: &mut Probe, walk: &Walk, operations: &[Operation]) {
    let unknown = Expected {
        codes: &["not_found"],
        ..Expected::status(404)
    };
    for path in [
        "/walk-nowhere",
        "/v1/walk-nowhere",
        "/v1",
        "/v1/walk/no/where/at/all/here",
    ] {
        let request = probe.request("GET", path).bearer_auth(walk.token(&Role::ALL));
        probe.expect(&format!("GET {path}"), request, unknown).await;
    }
    let templates: BTreeSet<&str> = operations.iter().map(|operation| operation.template.as_str()).collect();
    for template in templates {
        let here: Vec<&Operation> = operations.iter().filter(|o| o.template == template).collect();
        let taken = |method: &str| here.iter().any(|operation| operation.method == method);
        for method in ["PATCH", "DELETE", "POST", "PUT", "GET"] {
            if taken(method) {
                continue;
            }
            let what = format!("{method} {template}");
            let request = probe
                .request(method, &walk.path(here[0]))
                .bearer_auth(walk.token(&Role::ALL));
            let expected = Expected {
                codes: &["method_not_allowed"],
                ..Expected::status(405)
            };
            probe.expect(&what, request, expected).await;
        }
    }
}
