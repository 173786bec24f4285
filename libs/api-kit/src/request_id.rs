//! One id a request, from the caller or made here: in the log, and in the answer.

use axum::extract::{FromRequestParts, Request};
use axum::middleware::Next;
use axum::response::Response;
use core::convert::Infallible;
use http::request::Parts;
use http::{HeaderName, HeaderValue};
use tracing::Instrument as _;
use uuid::Uuid;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The id of the request being served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(pub String);

impl RequestId {
    fn of(request: &Request) -> Self {
        let given = request.headers().get(&HEADER).and_then(|value| value.to_str().ok());
        let sane = |id: &&str| {
            (1..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        };
        Self(
            given
                .filter(sane)
                .map_or_else(|| Uuid::now_v7().to_string(), str::to_owned),
        )
    }
}

pub(crate) async fn attach(mut request: Request, next: Next) -> Response {
    let id = RequestId::of(&request);
    request.extensions_mut().insert(id.clone());
    let span = tracing::info_span!("request", id = %id.0, method = %request.method(), path = %request.uri().path());
    let mut response = next.run(request).instrument(span.clone()).await;
    let status = response.status().as_u16();
    span.in_scope(|| {
        if status >= 500 {
            tracing::warn!(status, "answered");
        } else {
            tracing::debug!(status, "answered");
        }
    });
    // Letters, digits, '-', '_' and '.' only.
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        response.headers_mut().insert(HEADER, value);
    }
    response
}

impl<S: Sync> FromRequestParts<S> for RequestId {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let made = || Self(Uuid::now_v7().to_string());
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_else(made))
    }
}
