//! Things shown whole: the few fields that one looks for first, then whatever else there is as an outline.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use execution_plane_api::Attempt;
use resource_catalog_api::Resource;
use serde::Serialize;
use serde_json::Value;

use crate::render::{age, mark, word};

/// A form: names on the left, values on the right, of several lines each under the first.
#[derive(Default)]
struct Form {
    text: String,
}

impl Form {
    fn line(&mut self, name: &str, value: impl AsRef<str>) {
        let value = value.as_ref().trim_end();
        if !value.is_empty() {
            let _ = write!(
                self.text,
                "\n  {name:<14} {}",
                value.replace('\n', "\n                 ")
            );
        }
    }

    /// A value of any shape; an empty one is left out.
    fn part<T: Serialize>(&mut self, name: &str, value: &T) {
        self.line(name, outline(&serde_json::to_value(value).unwrap_or_default()));
    }
}

/// A resource as a person looks at it.
pub fn resource(resource: &Resource) -> String {
    let environment = resource.environment.as_ref().map(|name| format!(" in {name}"));
    let mut form = Form::default();
    form.line("lifecycle", resource.lifecycle_status.as_str());
    let mut health = vec![resource.health.status.as_str().to_owned()];
    health.extend(resource.health.reasons.iter().cloned());
    form.line("health", health.join("; "));
    form.line(
        "version",
        format!(
            "{}, generation {} of what is asked for",
            resource.version, resource.desired_generation
        ),
    );
    form.line(
        "changed",
        format!("{} ago", age(resource.updated_at, chrono::Utc::now())),
    );
    form.line("labels", pairs(&resource.labels));
    form.line("annotations", pairs(&resource.annotations));
    form.part("desired", &resource.desired_state);
    form.part("observed", &resource.observed_state);
    form.part("connection", &resource.connection);
    let edges = resource
        .edges
        .iter()
        .map(|edge| format!("{} {}", edge.edge_type.as_str(), edge.target));
    form.line("edges", edges.collect::<Vec<_>>().join("\n"));
    for provided in &resource.provided_capabilities {
        let mut text = provided.capability.to_string();
        let attributes = outline(&Value::Object(provided.attributes.clone()));
        for line in attributes.lines() {
            let _ = write!(text, "\n  {line}");
        }
        for evidence in &provided.evidence {
            let _ = write!(
                text,
                "\n  {} {} {} at {}",
                word(&evidence.result),
                word(&evidence.evidence_type),
                evidence.source_ref,
                evidence.observed_at.format("%Y-%m-%d %H:%M:%S UTC")
            );
        }
        form.line("provides", text);
    }
    form.line("uid", resource.uid.to_string());
    form.line("pin", resource.pin.to_hex());
    format!(
        "{}  {}{}{}",
        resource.resource_id,
        resource.resource_type,
        environment.unwrap_or_default(),
        form.text
    )
}

fn pairs(map: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = map.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(", ")
}

/// An attempt as a person looks at it.
pub fn attempt(attempt: &Attempt) -> String {
    let (summary, now) = (&attempt.summary, chrono::Utc::now());
    let state = word(&summary.state);
    let mut form = Form::default();
    form.line(
        "node",
        format!("{} of operation {}", summary.plan_node_id, summary.operation_id),
    );
    form.line(
        "job",
        format!("{} in {}", summary.job_type.as_str(), summary.environment),
    );
    form.line("queued", format!("{} ago", age(summary.queued_at, now)));
    form.line("waits for", attempt.waiting_for.clone().unwrap_or_default());
    if let Some(started) = summary.started_at {
        let span = age(started, summary.finished_at.unwrap_or(now));
        form.line("ran for", span);
    }
    form.line("runner", summary.runner_id.map(|id| id.to_string()).unwrap_or_default());
    form.line(
        "isolation",
        attempt.isolation_used.as_ref().map(word).unwrap_or_default(),
    );
    form.line("ended by", summary.reason.as_ref().map(word).unwrap_or_default());
    let output = attempt.output;
    let more = if output.complete { "" } else { " so far" };
    form.line("output", format!("{}{more}", crate::render::size(output.bytes)));
    form.part("result", &attempt.result);
    form.part("asked for", &attempt.spec);
    format!("{} attempt {}  {state}{}", mark(&state), summary.attempt_id, form.text)
}

/// A JSON value as an indented outline: names, values, lists with dashes. What is empty is left out.
pub fn outline(value: &Value) -> String {
    let mut text = String::new();
    write_outline(&mut text, value, 0);
    text.trim_end().to_owned()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

fn simple(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim_end().to_owned()),
        Value::Null => Some("-".to_owned()),
        Value::Array(_) | Value::Object(_) => None,
        other => Some(other.to_string()),
    }
}

fn write_outline(text: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields.iter().filter(|(_, inner)| !is_empty(inner)) {
                if let Some(word) = simple(inner) {
                    let _ = writeln!(text, "{indent}{name}: {}", word.replace('\n', &format!("\n{indent}  ")));
                } else {
                    let _ = writeln!(text, "{indent}{name}:");
                    write_outline(text, inner, depth + 1);
                }
            }
        }
        Value::Array(items) => {
            for inner in items {
                let mut item = String::new();
                write_outline(&mut item, inner, 0);
                // The first line stands behind the dash, the others under it.
                let item = item.trim_end().replace('\n', &format!("\n{indent}  "));
                let _ = writeln!(text, "{indent}- {item}");
            }
        }
        other => {
            let _ = writeln!(text, "{indent}{}", simple(other).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn an_outline_reads_like_a_form() {
        let value = json!({"a": 1, "b": {"c": "x"}, "d": [], "e": [{"f": true, "g": [1, 2]}, "h"], "i": null});
        assert_eq!(
            super::outline(&value),
            "a: 1\nb:\n  c: x\ne:\n  - f: true\n    g:\n      - 1\n      - 2\n  - h"
        );
    }
}
