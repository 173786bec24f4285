//! The JSON paths of api checks: `$.items[0].name`, `$['a key']`. A path names one place; there are
//! no wildcards and no filters, so that an expectation is about one value.

use serde_json::Value;

/// A path to one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath {
    text: String,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

/// The text is no path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a JSON path looks like $.items[0].name or $['a key'] (one place, no wildcards)")]
pub struct JsonPathError;

impl JsonPath {
    /// Reads `text`.
    ///
    /// # Errors
    /// When it is no path.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        let mut rest = text.strip_prefix('$').ok_or(JsonPathError)?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, tail) = step(rest).ok_or(JsonPathError)?;
            steps.push(step);
            rest = tail;
        }
        Ok(Self {
            text: text.to_owned(),
            steps,
        })
    }

    /// The value at the path.
    #[must_use]
    pub fn find<'a>(&self, document: &'a Value) -> Option<&'a Value> {
        self.steps.iter().try_fold(document, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::Index(index) => value.get(index),
        })
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

fn step(rest: &str) -> Option<(Step, &str)> {
    if let Some(name) = rest.strip_prefix('.') {
        let end = name.find(['.', '[']).unwrap_or(name.len());
        let (key, tail) = name.split_at(end);
        return (!key.is_empty()).then(|| (Step::Key(key.to_owned()), tail));
    }
    let inside = rest.strip_prefix('[')?;
    if let Some(quoted) = inside.strip_prefix('\'') {
        let (key, tail) = quoted.split_once("']")?;
        return Some((Step::Key(key.to_owned()), tail));
    }
    let (digits, tail) = inside.split_once(']')?;
    digits.parse().ok().map(|index| (Step::Index(index), tail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_names_one_place() {
        let document = json!({"items": [{"name": "a"}, {"a key": 7}], "ok": true});
        for (path, value) in [
            ("$", Some(document.clone())),
            ("$.ok", Some(json!(true))),
            ("$.items[0].name", Some(json!("a"))),
            ("$.items[1]['a key']", Some(json!(7))),
            ("$['items'][2]", None),
            ("$.missing.deeper", None),
        ] {
            let found = JsonPath::parse(path).unwrap().find(&document).cloned();
            assert_eq!(found, value, "{path}");
        }
        for bad in ["", "ok", "$.", "$..a", "$[x]", "$['a", "$.a[-1]", "$.a[*]"] {
            assert!(JsonPath::parse(bad).is_err(), "{bad}");
        }
    }
}
