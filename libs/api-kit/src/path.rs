//! Path parameters. What cannot be an id names nothing: 404, like anything that is not there.

use axum::extract::{FromRequestParts, Path};
use http::request::Parts;
use serde::de::DeserializeOwned;

use crate::Problem;

/// The parameters of the path, parsed: `StrictPath(id): StrictPath<OperationId>` or a tuple.
#[derive(Debug, Clone, Copy)]
pub struct StrictPath<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for StrictPath<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(value) = Path::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::not_found("such thing: the path holds no valid id"))?;
        Ok(Self(value))
    }
}
