//! An answer that can be given again.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, ETAG, LOCATION};
use http::{HeaderName, HeaderValue, StatusCode};
use problem::ProblemCode;
use serde::Serialize;

use crate::{ETag, Problem};

/// An answer as it is kept: status, JSON body, and the two headers that writes send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResponse {
    /// The HTTP status.
    pub status: u16,
    /// The JSON text; empty for none.
    pub body: String,
    /// The version written.
    pub version: Option<i64>,
    /// Where the new object is.
    pub location: Option<String>,
    pub(crate) replayed: bool,
}

impl StoredResponse {
    /// An answer with `body` as JSON.
    ///
    /// # Errors
    /// 500 when the body is no JSON.
    pub fn json(status: u16, body: &impl Serialize) -> Result<Self, Problem> {
        let body = serde_json::to_string(body).map_err(|error| crate::internal_problem(&error))?;
        Ok(Self {
            status,
            body,
            version: None,
            location: None,
            replayed: false,
        })
    }

    /// An answer without a body.
    #[must_use]
    pub const fn empty(status: u16) -> Self {
        Self {
            status,
            body: String::new(),
            version: None,
            location: None,
            replayed: false,
        }
    }

    /// Sends `ETag`.
    #[must_use]
    pub const fn version(mut self, version: i64) -> Self {
        self.version = Some(version);
        self
    }

    /// Sends `Location`.
    #[must_use]
    pub fn location(mut self, location: impl Into<String>) -> Self {
        self.location = Some(location.into());
        self
    }
}

impl IntoResponse for StoredResponse {
    fn into_response(self) -> Response {
        let is_problem = self.status >= 400;
        let is_empty = self.body.is_empty();
        let problem = is_problem
            .then(|| serde_json::from_str::<Problem>(&self.body).ok())
            .flatten();
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if let Some(problem) = problem {
            response.extensions_mut().insert(ProblemCode(problem.code));
        }
        let headers = response.headers_mut();
        if !is_empty {
            let kind = if is_problem {
                problem::MEDIA_TYPE
            } else {
                "application/json"
            };
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        let etag = self
            .version
            .and_then(|version| HeaderValue::from_str(&ETag(version).text()).ok());
        let location = self.location.and_then(|location| HeaderValue::from_str(&location).ok());
        headers.extend(etag.map(|value| (ETAG, value)));
        headers.extend(location.map(|value| (LOCATION, value)));
        if self.replayed {
            let name = HeaderName::from_static("idempotency-replayed");
            headers.insert(name, HeaderValue::from_static("true"));
        }
        response
    }
}
