//! Idempotent writes: the first outcome of a request is kept with its key, in the same transaction
//! as what it did, and given again to a repeat.
//!
//! A handler does, inside its transaction: `claim` (a fresh key is now held, and a concurrent
//! repeat waits for this transaction; a repeat gets the stored answer), its work, `store`, commit.
//! A transaction that rolls back leaves the key free. The table is `sql/idempotency.sql`, copied
//! into the service's migrations.

pub mod hot;
mod key;
mod response;
pub mod sqlx;

use axum::extract::{FromRequest, OriginalUri, Request};
use kernel::Sha256Digest;
use serde::de::DeserializeOwned;

pub use key::IdempotencyKey;
pub use response::StoredResponse;

use crate::Problem;
use crate::json::{parse_json, read_json};

/// What names a request and tells whether another with the same key is the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotentRequest {
    /// The caller's key.
    pub key: IdempotencyKey,
    /// Method and path, like `POST /v1/plans`: keys of different operations do not meet.
    pub operation: String,
    /// Over path, query and body.
    pub digest: Sha256Digest,
}

impl IdempotentRequest {
    /// Names a request with `body`.
    #[must_use]
    pub fn new(key: IdempotencyKey, method: &http::Method, uri: &http::Uri, body: &[u8]) -> Self {
        let mut content = uri.query().unwrap_or_default().as_bytes().to_vec();
        content.push(b'\n');
        content.extend_from_slice(body);
        Self {
            key,
            operation: format!("{method} {}", uri.path()),
            digest: Sha256Digest::of(&content),
        }
    }
}

/// What a key turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// New: do the work, then store the answer.
    Fresh,
    /// A repeat: this was the answer.
    Replay(StoredResponse),
}

/// A JSON body with its `Idempotency-Key`.
#[derive(Debug, Clone)]
pub struct IdempotentJson<T> {
    /// The body, parsed as strictly as [`crate::StrictJson`] does.
    pub body: T,
    /// For [`sqlx::claim`] or [`hot::claim`].
    pub request: IdempotentRequest,
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for IdempotentJson<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        let key = IdempotencyKey::from_headers(request.headers())?;
        let method = request.method().clone();
        let uri = match request.extensions().get::<OriginalUri>() {
            Some(OriginalUri(uri)) => uri.clone(),
            None => request.uri().clone(),
        };
        let bytes = read_json(request).await?;
        Ok(Self {
            body: parse_json(&bytes)?,
            request: IdempotentRequest::new(key, &method, &uri, &bytes),
        })
    }
}

/// Decides by what was stored under a key.
fn decide(request: &IdempotentRequest, digest: &[u8], response: Option<StoredResponse>) -> Result<Claim, Problem> {
    if digest != request.digest.as_bytes() {
        return Err(Problem::idempotency_key_reused());
    }
    // Only a transaction that claimed and then forgot to store leaves none.
    response.map(Claim::Replay).ok_or_else(|| {
        tracing::error!(operation = %request.operation, "an idempotency key was committed without its answer");
        Problem::internal()
    })
}
