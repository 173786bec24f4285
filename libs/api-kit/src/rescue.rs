//! Whatever else goes wrong still ends as a problem.

use std::any::Any;

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};

use crate::Problem;

/// Every path that no route has.
pub(crate) async fn unknown_path() -> Problem {
    Problem::not_found("such path").remedy("The paths are listed in /openapi.json.")
}

/// A handler panicked: logged here, the caller learns nothing of it.
pub(crate) fn panicked(payload: Box<dyn Any + Send>) -> Response {
    let message = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    tracing::error!(message, "a handler panicked");
    Problem::internal().into_response()
}

/// Turns error answers of other origin (axum's own rejections are plain text) into problems.
pub(crate) async fn problems_only(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    let is_problem = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind == problem::MEDIA_TYPE);
    if !is_error || is_problem {
        return response;
    }
    let mut replaced = stand_in(status).into_response();
    for name in [ALLOW, RETRY_AFTER] {
        if let Some(value) = response.headers().get(&name) {
            replaced.headers_mut().insert(name, value.clone());
        }
    }
    replaced
}

fn stand_in(status: StatusCode) -> Problem {
    let reason = status.canonical_reason().unwrap_or("Error");
    match status.as_u16() {
        404 => Problem::not_found("such thing"),
        500 => Problem::internal(),
        503 => Problem::unavailable("The service cannot answer at the moment."),
        code => Problem::new(code, reason.to_ascii_lowercase().replace([' ', '-'], "_"), reason),
    }
}

/// Text that is JSON already.
pub(crate) async fn json_text(text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
