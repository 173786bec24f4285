//! The header `Idempotency-Key`.

use axum::extract::FromRequestParts;
use http::HeaderMap;
use http::request::Parts;

use crate::Problem;

/// A caller's name for a request: 1 to 255 visible ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key of a request.
    ///
    /// # Errors
    /// 400 `idempotency_key_required` or `invalid_idempotency_key`.
    pub fn from_headers(headers: &HeaderMap) -> Result<Self, Problem> {
        let mut values = headers.get_all("idempotency-key").iter();
        let Some(value) = values.next() else {
            return Err(
                Problem::new(400, "idempotency_key_required", "An Idempotency-Key is needed")
                    .detail("This write has no id of its own, so the request must name itself.")
                    .remedy("Send `Idempotency-Key: <a fresh UUID>`, and the same one when repeating the request."),
            );
        };
        let text = value.to_str().unwrap_or_default();
        let good = (1..=255).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        if good && values.next().is_none() {
            Ok(Self(text.to_owned()))
        } else {
            Err(
                Problem::new(400, "invalid_idempotency_key", "The Idempotency-Key is not valid")
                    .detail("One key of 1 to 255 visible ASCII characters is expected."),
            )
        }
    }
}

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        Self::from_headers(&parts.headers)
    }
}
