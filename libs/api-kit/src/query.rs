//! Query strings, strictly: unknown parameters are faults, all of them named.

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::de::DeserializeOwned;
use serde_urlencoded::Deserializer;

use crate::{FieldError, Problem};

/// The query of a request. `T` derives `Deserialize` without `deny_unknown_fields` or `flatten`.
#[derive(Debug, Clone, Copy)]
pub struct StrictQuery<T>(pub T);

/// Longest accepted query string, in bytes.
const MAX: usize = 16 * 1024;

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for StrictQuery<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        parse(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

fn parse<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    if query.len() > MAX {
        let fault = FieldError::new("", "too_long", format!("a query has at most {MAX} bytes"));
        return Err(Problem::invalid([fault]));
    }
    let mut unknown = Vec::new();
    let pairs = Deserializer::new(form_urlencoded::parse(query.as_bytes()));
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(pairs, &mut track);
    let parsed = serde_ignored::deserialize(tracked, |path| unknown.push(path.to_string()));
    let mut errors: Vec<FieldError> = unknown
        .into_iter()
        .map(|name| {
            FieldError::new(
                format!("/{name}"),
                "unknown_parameter",
                "there is no such query parameter",
            )
        })
        .collect();
    match parsed {
        Ok(value) if errors.is_empty() => Ok(value),
        Ok(_) => Err(Problem::invalid(errors)),
        Err(error) => {
            let name = track.path().to_string();
            let pointer = if name == "." { String::new() } else { format!("/{name}") };
            errors.push(FieldError::new(pointer, "invalid", error.to_string()));
            Err(Problem::invalid(errors))
        }
    }
}
