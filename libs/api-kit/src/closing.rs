//! Telling requests that stay open (long polls, event streams) that the service is about to end.

use axum::extract::FromRequestParts;
use core::convert::Infallible;
use http::request::Parts;
use tokio_util::sync::CancellationToken;

/// Ends when the service begins to shut down. A handler that waits answers at once then: an empty
/// page, or a stream that stops without its final marker (so that the client resumes).
#[derive(Debug, Clone, Default)]
pub struct Closing(pub CancellationToken);

impl Closing {
    /// Waits until the service begins to shut down.
    pub async fn closed(&self) {
        self.0.cancelled().await;
    }
}

impl<S: Sync> FromRequestParts<S> for Closing {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        // Set by `serve`; a router called without it never closes.
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}
