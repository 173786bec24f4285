//! What the walker reads from an OpenAPI document.

use std::collections::BTreeMap;

use identity::Role;
use serde_json::Value;

/// One operation, as far as the walker needs it.
#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub method: String,
    pub template: String,
    /// Roles that may call it; empty for a public one.
    pub roles: Vec<Role>,
    pub is_public: bool,
    /// Media types of the request body.
    pub media_types: Vec<String>,
    pub takes_array: bool,
    pub body_limit: Option<usize>,
    pub needs_idempotency_key: bool,
    pub takes_if_match: bool,
    pub query: Vec<String>,
    pub streams: bool,
    /// Whether it answers with items, or with an array.
    pub lists: bool,
    /// Whether the same path can be read.
    pub has_read: bool,
    path_parameters: Vec<(String, Value)>,
}

impl Operation {
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.method, self.template)
    }

    pub(super) fn takes_json(&self) -> bool {
        self.media_types.iter().any(|kind| kind == "application/json")
    }

    pub(super) fn is_object(&self) -> bool {
        self.template.contains('{')
    }

    /// The parameters of the template as they are in `path`.
    pub(super) fn parameters_of(&self, path: &str) -> BTreeMap<String, String> {
        let segments = self.template.split('/').zip(path.split('/'));
        let parameters = segments.filter_map(|(name, value)| {
            let name = name.strip_prefix('{')?.strip_suffix('}')?;
            Some((name.to_owned(), value.to_owned()))
        });
        parameters.collect()
    }

    /// A path that fits the template and names nothing.
    pub(super) fn some_path(&self) -> String {
        let mut path = self.template.clone();
        for (name, schema) in &self.path_parameters {
            let is_uuid = schema["format"] == "uuid";
            let value = match schema["example"].as_str() {
                Some(example) => example.to_owned(),
                None if is_uuid => uuid::Uuid::now_v7().to_string(),
                None => "walk-nothing".to_owned(),
            };
            path = path.replace(&format!("{{{name}}}"), &value);
        }
        path
    }
}

/// Every operation of the document.
pub(super) fn operations(document: &Value) -> Vec<Operation> {
    let mut operations = Vec::new();
    for (template, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            if ["get", "put", "post", "delete", "patch"].contains(&method.as_str()) {
                let mut read = read(document, template, method, operation);
                read.has_read = item["get"].is_object();
                operations.push(read);
            }
        }
    }
    operations
}

fn read(document: &Value, template: &str, method: &str, operation: &Value) -> Operation {
    let parameters: Vec<&Value> = operation["parameters"].as_array().into_iter().flatten().collect();
    let named = |place: &str| {
        parameters
            .iter()
            .filter(|p| p["in"] == place)
            .copied()
            .collect::<Vec<_>>()
    };
    let name = |parameter: &Value| parameter["name"].as_str().unwrap_or_default().to_owned();
    let has_header = |wanted: &str| named("header").iter().any(|p| name(p).eq_ignore_ascii_case(wanted));
    let content = operation["requestBody"]["content"].as_object();
    let json_schema = resolve(
        document,
        &operation["requestBody"]["content"]["application/json"]["schema"],
    );
    let answer = resolve(
        document,
        &operation["responses"]["200"]["content"]["application/json"]["schema"],
    );
    let roles = operation["x-roles"].as_array().into_iter().flatten();
    Operation {
        method: method.to_ascii_uppercase(),
        template: template.to_owned(),
        roles: roles.filter_map(|role| role.as_str()?.parse().ok()).collect(),
        is_public: operation["security"].as_array().is_some_and(Vec::is_empty),
        media_types: content
            .into_iter()
            .flat_map(|content| content.keys().cloned())
            .collect(),
        takes_array: json_schema["type"] == "array",
        body_limit: operation["x-body-limit"]
            .as_u64()
            .and_then(|limit| usize::try_from(limit).ok()),
        needs_idempotency_key: has_header("idempotency-key"),
        takes_if_match: has_header("if-match"),
        query: named("query").into_iter().map(name).collect(),
        streams: operation["responses"]["200"]["content"]["text/event-stream"].is_object(),
        lists: answer["type"] == "array" || answer["properties"]["items"].is_object(),
        has_read: false,
        path_parameters: named("path")
            .into_iter()
            .map(|parameter| (name(parameter), resolve(document, &parameter["schema"]).clone()))
            .collect(),
    }
}

/// Follows a reference within the document.
fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let reference = schema["$ref"]
        .as_str()
        .and_then(|reference| reference.strip_prefix('#'));
    match reference.and_then(|pointer| document.pointer(pointer)) {
        Some(target) => resolve(document, target),
        None => schema,
    }
}
