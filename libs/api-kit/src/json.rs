//! Request bodies, strictly: JSON or nothing, every unknown field named, every fault by pointer.

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt as _, LengthLimitError};
use serde::de::DeserializeOwned;

use crate::json_guard;
use crate::{FieldError, Problem};

/// A JSON body. `T` derives `Deserialize` without `deny_unknown_fields` (which stops at the first
/// unknown field) and without `flatten` (which hides them).
#[derive(Debug, Clone, Copy)]
pub struct StrictJson<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for StrictJson<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        let bytes = read_json(request).await?;
        parse_json(&bytes).map(Self)
    }
}

/// The bytes of a body that says it is JSON.
pub(crate) async fn read_json(request: Request) -> Result<Bytes, Problem> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(is_json) {
        return Err(Problem::new(415, "unsupported_media_type", "The body is not JSON")
            .detail("This takes `Content-Type: application/json`."));
    }
    read_bytes(request).await
}

fn is_json(kind: &str) -> bool {
    let mut parts = kind.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    let utf8 = |parameter: &str| {
        let value = parameter.to_ascii_lowercase();
        !value.starts_with("charset=") || value.trim_start_matches("charset=").trim_matches('"') == "utf-8"
    };
    essence.eq_ignore_ascii_case("application/json") && parts.all(utf8)
}

async fn read_bytes(request: Request) -> Result<Bytes, Problem> {
    match request.into_body().collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) => Err(body_problem(&error)),
    }
}

/// Why a body could not be read: past its limit, or cut off.
fn body_problem(error: &axum::Error) -> Problem {
    let mut next: Option<&dyn core::error::Error> = Some(error);
    while let Some(cause) = next {
        if cause.is::<LengthLimitError>() {
            return Problem::new(413, "body_too_large", "The request body is too large");
        }
        next = cause.source();
    }
    Problem::new(400, "body_incomplete", "The request body ended early")
}

/// Parses `bytes` as strictly as [`StrictJson`] does.
///
/// # Errors
/// 400 `malformed_json`; 422 `validation_failed` with every unknown field and the first fault of
/// type, each by pointer.
pub fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut errors = json_guard::check(bytes).map_err(|error| malformed(&error))?;
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut json, &mut track);
    let parsed = serde_ignored::deserialize(tracked, |path| {
        errors.push(unknown_field(ignored_pointer(&path)));
    });
    match parsed {
        Ok(value) if errors.is_empty() => Ok(value),
        Ok(_) => Err(Problem::invalid(errors)),
        Err(error) => {
            errors.push(type_fault(&track.path(), &error));
            Err(Problem::invalid(errors))
        }
    }
}

fn malformed(error: &serde_json::Error) -> Problem {
    Problem::new(400, "malformed_json", "The body is not well-formed JSON").detail(format!("{error}."))
}

fn unknown_field(pointer: String) -> FieldError {
    FieldError::new(pointer, "unknown_field", "there is no such field")
}

/// A fault of type at `path`, told apart by serde's message.
fn type_fault(path: &serde_path_to_error::Path, error: &serde_json::Error) -> FieldError {
    let text = error.to_string();
    let text = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(before, _)| before);
    let parent = path_pointer(path);
    let named = |prefix: &str| {
        let rest = text.strip_prefix(prefix)?;
        rest.split('`').next()
    };
    if let Some(field) = named("missing field `") {
        return FieldError::new(
            format!("{parent}/{}", escape(field)),
            "missing_field",
            "the field is needed",
        );
    }
    if let Some(field) = named("unknown field `") {
        // The path may already end in the field itself.
        let end = format!("/{}", escape(field));
        let pointer = if parent.ends_with(&end) { parent } else { parent + &end };
        return unknown_field(pointer);
    }
    FieldError::new(parent, "invalid", text)
}

fn path_pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
            Segment::Map { key } => pointer.push_str(&format!("/{}", escape(key))),
            // The variant is no level of the JSON when the tag stands beside its fields.
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    pointer
}

fn ignored_pointer(path: &serde_ignored::Path<'_>) -> String {
    use serde_ignored::Path;
    match path {
        Path::Root => String::new(),
        Path::Seq { parent, index } => format!("{}/{index}", ignored_pointer(parent)),
        Path::Map { parent, key } => format!("{}/{}", ignored_pointer(parent), escape(key)),
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => {
            ignored_pointer(parent)
        }
    }
}

pub(crate) fn escape(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}
