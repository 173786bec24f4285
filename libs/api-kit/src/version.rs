//! Versions of objects as `ETag` and `If-Match`.

use axum::extract::FromRequestParts;
use axum::response::{IntoResponseParts, ResponseParts};
use core::convert::Infallible;
use http::HeaderValue;
use http::header::{ETAG, IF_MATCH};
use http::request::Parts;

use crate::Problem;

/// The version of an object, sent as `ETag: "<version>"`: `(ETag(version), Json(body))`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ETag(pub i64);

impl ETag {
    /// The header's text.
    #[must_use]
    pub fn text(self) -> String {
        format!("\"{}\"", self.0)
    }
}

impl IntoResponseParts for ETag {
    type Error = Infallible;
    fn into_response_parts(self, mut parts: ResponseParts) -> Result<ResponseParts, Infallible> {
        // Digits and quotes only.
        if let Ok(value) = HeaderValue::from_str(&self.text()) {
            parts.headers_mut().insert(ETAG, value);
        }
        Ok(parts)
    }
}

/// The version a write is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMatch {
    /// No precondition.
    Absent,
    /// `*`: the object must exist.
    Any,
    /// The object must be at this version.
    Version(i64),
}

impl IfMatch {
    /// Holds the precondition against the object's current version.
    ///
    /// # Errors
    /// 412 `version_mismatch` with the current version.
    pub fn check(self, what: impl core::fmt::Display, current: i64) -> Result<(), Problem> {
        match self {
            Self::Version(expected) if expected != current => Err(Problem::version_mismatch(what, current)),
            _ => Ok(()),
        }
    }

    /// Refuses a write without a precondition, where one is needed.
    ///
    /// # Errors
    /// 428 `precondition_required`.
    pub fn required(self) -> Result<Self, Problem> {
        match self {
            Self::Absent => Err(Problem::new(
                428,
                "precondition_required",
                "The write must say which version it is meant for",
            )
            .remedy("Send `If-Match` with the `ETag` that was read.")),
            given => Ok(given),
        }
    }

    /// The version, if one was named.
    #[must_use]
    pub const fn version(self) -> Option<i64> {
        match self {
            Self::Version(version) => Some(version),
            _ => None,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let mut values = parts.headers.get_all(IF_MATCH).iter();
        let Some(value) = values.next() else {
            return Ok(Self::Absent);
        };
        let text = value.to_str().unwrap_or_default().trim();
        let parsed = match text {
            "*" => Some(Self::Any),
            _ => text
                .strip_prefix('"')
                .and_then(|text| text.strip_suffix('"'))
                .and_then(|digits| digits.parse().ok())
                .map(Self::Version),
        };
        parsed.filter(|_| values.next().is_none()).ok_or_else(|| {
            Problem::new(400, "invalid_if_match", "The If-Match header is not understood")
                .detail("One version in quotes, like \"7\", or * is expected.")
        })
    }
}
