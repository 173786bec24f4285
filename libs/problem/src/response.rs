//! A problem as an answer of axum.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::{MEDIA_TYPE, Problem};

/// The code of a problem, beside its answer: for layers that count or record refusals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProblemCode(pub String);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        // Only strings, numbers and JSON values: cannot fail, and an empty body is still the status.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if self.status == 401 {
            let challenge = match self.code.as_str() {
                "token_missing" => "Bearer",
                _ => "Bearer error=\"invalid_token\"",
            };
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(ProblemCode(self.code));
        response
    }
}
