//! The one shape of every error that crosses HTTP: RFC 9457 problem details with a stable `code`.
//!
//! Shared by servers (feature `axum` makes it a response) and clients (who decode it).
//!
//! Invariants:
//! - `code` is what programs act on; it never changes its meaning. `detail` is for people.
//! - A problem says what was wrong, where, and (`remedy`) what to do. It never carries a stack
//!   trace, SQL, a secret, or a word about objects of another organization.

mod known;
#[cfg(feature = "axum")]
mod response;

#[cfg(feature = "axum")]
pub use response::ProblemCode;

use core::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The media type of a problem.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// What was wrong with a request, or why it could not be served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Always `about:blank`: `code` tells kinds apart.
    #[serde(rename = "type", default = "blank")]
    pub kind: String,
    /// A short summary of the kind of problem.
    pub title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// The stable name of the kind of problem, like `version_mismatch`.
    pub code: String,
    /// What was wrong this time.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Each fault by its place in the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// When trying again makes sense, in seconds from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u64>,
    /// Further members, like `current_version`.
    #[serde(flatten)]
    #[schema(value_type = Object, additional_properties)]
    pub extensions: Map<String, Value>,
}

fn blank() -> String {
    "about:blank".to_owned()
}

/// One fault in a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// Where: a JSON Pointer into the body, or `/name` for a query parameter. Empty = the whole.
    pub pointer: String,
    /// The stable name of the kind of fault, like `unknown_field`.
    pub code: String,
    /// What is wrong there.
    pub detail: String,
}

impl FieldError {
    /// A fault at `pointer`.
    pub fn new(pointer: impl Into<String>, code: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            code: code.into(),
            detail: detail.into(),
        }
    }
}

impl Problem {
    /// A problem of the kind `code`. `title` is the same for every problem of a kind.
    pub fn new(status: u16, code: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            kind: blank(),
            title: title.into(),
            status,
            code: code.into(),
            detail: String::new(),
            errors: Vec::new(),
            remedy: None,
            retry_after_seconds: None,
            extensions: Map::new(),
        }
    }

    /// Says what was wrong this time.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Names a fault by its place.
    #[must_use]
    pub fn error(mut self, error: FieldError) -> Self {
        self.errors.push(error);
        self
    }

    /// Names many faults by their places.
    #[must_use]
    pub fn errors(mut self, errors: impl IntoIterator<Item = FieldError>) -> Self {
        self.errors.extend(errors);
        self
    }

    /// Says when to try again.
    #[must_use]
    pub const fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }

    /// Adds a member of its own, like `current_version`.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extensions.insert(name.into(), value.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} {})", self.title, self.status, self.code)?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        for error in &self.errors {
            write!(f, "\n  {}: {}", error.pointer, error.detail)?;
        }
        if let Some(remedy) = &self.remedy {
            write!(f, "\n  {remedy}")?;
        }
        Ok(())
    }
}

impl core::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_problem_reads_back_as_it_was_with_its_own_members() {
        let problem = Problem::version_mismatch("node/web-1", 7)
            .error(FieldError::new("/a~1b", "unknown_field", "there is no such field"))
            .retry_after(3);
        let text = serde_json::to_value(&problem).unwrap();
        assert_eq!(text["type"], json!("about:blank"));
        assert_eq!(text["current_version"], json!(7));
        assert_eq!(serde_json::from_value::<Problem>(text).unwrap(), problem);
    }

    #[test]
    fn a_problem_of_another_server_needs_only_title_status_and_code() {
        let problem: Problem = serde_json::from_value(json!({"title": "No", "status": 418, "code": "teapot"})).unwrap();
        assert_eq!(problem, Problem::new(418, "teapot", "No"));
    }

    #[test]
    fn for_people_it_says_what_where_and_what_to_do() {
        let problem =
            Problem::invalid([FieldError::new("/name", "missing", "a name is needed")]).remedy("Give it one.");
        let text = problem.to_string();
        for part in ["422", "validation_failed", "/name: a name is needed", "Give it one."] {
            assert!(text.contains(part), "{text}");
        }
    }
}
