//! Parameters: JSON Schemas with defaults and hints for forms.

use std::collections::BTreeMap;
use std::sync::Arc;

use jsonschema::PatternOptions;
use serde_json::{Value, json};

use crate::fault::{FaultCode, Faults, suggestion};
use crate::reader::{Fields, Placed};
use crate::secrets;
use crate::template::Parameter;
use crate::yaml::{Key, Node};

const HINTS: [&str; 5] = ["label", "help", "order", "widget", "group"];

pub(super) fn read_all(entries: &[(Key, Node)], faults: &Faults) -> BTreeMap<String, Parameter> {
    let mut parameters = BTreeMap::new();
    for (key, node) in entries {
        let name = Placed {
            at: key.at,
            value: key.name.clone(),
        };
        if !is_variable(&key.name) {
            faults.add(
                key.at,
                FaultCode::InvalidValue,
                format!("`{}` cannot be a parameter's name", key.name),
                "use lower-case letters, digits and `_`, a letter first, at most 63",
            );
        }
        if let Some(parameter) = read(&name, node, faults) {
            parameters.insert(name.value, parameter);
        }
    }
    parameters
}

/// Parameters are read as `parameters.NAME`, so a name is a CEL identifier.
fn is_variable(name: &str) -> bool {
    super::is_name(name) && !name.contains('-')
}

fn read(name: &Placed<String>, node: &Node, faults: &Faults) -> Option<Parameter> {
    let mut fields = Fields::open(node, "parameter", faults)?;
    let schema_node = fields.required("schema");
    let default = fields.node("default");
    let description = fields.prose("description");
    let ui = read_hints(fields.node("ui"), faults);
    fields.finish();
    let schema_node = schema_node?;
    let schema = schema_node.to_json();
    let validator = match compile(&schema) {
        Ok(validator) => validator,
        Err(problem) => {
            faults.add(
                schema_node.at,
                FaultCode::BadSchema,
                format!("the schema of `{}` is not a JSON Schema: {problem}", name.value),
                "write a JSON Schema (draft 2020-12); references may only point into the schema itself",
            );
            return None;
        }
    };
    if secrets::is_secret_name(&name.value) && secrets::holds_text(&schema) {
        faults.add(
            name.at,
            FaultCode::SecretValue,
            format!("the parameter `{}` would carry a secret's value", name.value),
            "take a reference instead: a job's `secrets` with `secret_ref: vault://MOUNT/PATH`",
        );
    }
    let default = default.map(|node| {
        let value = node.to_json();
        for error in validator.iter_errors(&value) {
            faults.add(
                node.place_of(error.instance_path().as_str()),
                FaultCode::InvalidValue,
                format!("the default of `{}` breaks its own schema: {error}", name.value),
                "change the default or the schema",
            );
        }
        value
    });
    Some(Parameter {
        schema,
        validator: Arc::new(validator),
        default,
        description,
        ui,
    })
}

/// Patterns run in linear time: a pack comes from outside.
pub(crate) fn compile(schema: &Value) -> Result<jsonschema::Validator, String> {
    if !schema.is_object() {
        return Err("it is no mapping".to_owned());
    }
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
        .map_err(|error| error.to_string())
}

fn read_hints(node: Option<&Node>, faults: &Faults) -> Value {
    let Some(node) = node else { return json!({}) };
    for (key, _) in crate::reader::map(node, "ui", faults) {
        if !HINTS.contains(&key.name.as_str()) {
            faults.add(
                key.at,
                FaultCode::UnknownField,
                format!("there is no hint `{}`", key.name),
                suggestion(&key.name, HINTS),
            );
        }
    }
    node.to_json()
}
