//! The shapes of the source document, kept word for word in `source/shapes.yaml`: with values in
//! place of the placeholders they parse and come back the same, and every name and every closed set
//! of words in them is exactly the code's.

use contracts::*;
use saphyr::{LoadableYamlNode, Yaml};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

const SHAPES: &str = include_str!("../../source/shapes.yaml");

fn to_json(node: &Yaml) -> Value {
    if let Some(mapping) = node.as_mapping() {
        let fields = mapping
            .iter()
            .map(|(k, v)| (k.as_str().expect("keys are words").to_owned(), to_json(v)));
        return Value::Object(fields.collect::<Map<_, _>>());
    }
    if let Some(items) = node.as_sequence() {
        return Value::Array(items.iter().map(to_json).collect());
    }
    node.as_integer()
        .map(Value::from)
        .or_else(|| node.as_str().map(Value::from))
        .expect("the shapes hold words and numbers")
}

/// Name and body of every shape, as they stand in the document.
fn shapes() -> Vec<(String, Value)> {
    let documents = Yaml::load_from_str(SHAPES).expect("the shapes are YAML");
    let shape = |node: &Yaml| match to_json(node) {
        Value::Object(fields) => fields.into_iter().next().expect("one shape a document"),
        other => panic!("not a shape: {other}"),
    };
    documents.iter().map(shape).collect()
}

fn artifact() -> Value {
    json!({"id": ID, "type": "install_report", "storage": "s3", "uri": "s3://a/b", "sensitivity": "internal",
        "produced_by": {"operation_id": ID, "plan_node_id": "n"}})
}
fn evidence() -> Value {
    json!({"id": ID, "type": "api_check", "capability": "a.b", "result": "passed", "source_ref": "log://x", "observed_at": NOW})
}
const ID: &str = "01890000-0000-7000-8000-000000000001";
const NOW: &str = "2026-04-29T10:00:00Z";

/// The shape with values for placeholders, `choice` picking among alternatives.
fn filled(value: &Value, choice: usize) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(k, v)| {
                let resource = k == "resource_id" && v == "string";
                (
                    k.clone(),
                    if resource {
                        json!("node/worker-3")
                    } else if k == "resource_type" && v == "string" {
                        json!("compute.node")
                    } else {
                        filled(v, choice)
                    },
                )
            })
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(|v| filled(v, choice)).collect::<Vec<_>>().into(),
        Value::String(word) => match word.as_str() {
            "uuid" => json!(ID),
            "timestamp" => json!(NOW),
            "integer" => json!(7),
            "artifact_ref" => artifact(),
            "evidence_ref" => evidence(),
            "log_ref" => json!({"id": ID, "uri": "s3://l/x", "sha256": "00".repeat(32), "size_bytes": 1, "lines": 1}),
            word => {
                let words: Vec<&str> = word.split(" | ").collect();
                json!(words[choice % words.len()])
            }
        },
        other => other.clone(),
    }
}

fn comes_back<T: Serialize + DeserializeOwned>(value: &Value) -> Value {
    let typed: T = serde_json::from_value(value.clone()).unwrap_or_else(|e| panic!("{e}\n{value:#}"));
    serde_json::to_value(typed).unwrap()
}

fn through(shape: &str, value: &Value) -> Value {
    match shape {
        "job_spec" => comes_back::<JobSpec>(value),
        "execution_result" => comes_back::<ExecutionResult>(value),
        "artifact_ref" => comes_back::<ArtifactRef>(value),
        "evidence_ref" => comes_back::<EvidenceRef>(value),
        "resource_update_command" => comes_back::<ResourceUpdateCommand>(value),
        "catalog_projection_event" => comes_back::<CatalogProjectionEvent>(value),
        other => panic!("the document has a shape without a type: {other}"),
    }
}

#[test]
fn all_six_shapes_parse_and_round_trip_with_every_alternative() {
    let shapes = shapes();
    assert_eq!(shapes.len(), 6);
    for (name, shape) in &shapes {
        for choice in 0..6 {
            let value = filled(shape, choice);
            assert_eq!(through(name, &value), value, "{name}");
        }
    }
}

fn resolve<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let target = schema.get("$ref").and_then(Value::as_str).or_else(|| {
        let options = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
        options.iter().find_map(|option| option.get("$ref")?.as_str())
    });
    target.map_or(schema, |pointer| {
        root.pointer(pointer.trim_start_matches('#')).expect("a definition")
    })
}

fn words(schema: &Value) -> Option<Vec<&str>> {
    if let Some(set) = schema.get("enum").and_then(Value::as_array) {
        return set.iter().map(Value::as_str).collect();
    }
    let options = schema.get("oneOf").and_then(Value::as_array)?;
    Some(
        options
            .iter()
            .filter_map(|o| o.get("enum")?.as_array()?.first()?.as_str())
            .collect(),
    )
}

/// Sets that the design leaves open, or of which the document shows one member.
const OPEN: [&str; 2] = ["artifact_ref/type", "catalog_projection_event/event_type"];

fn compare(at: &str, shape: &Value, schema: &Value, root: &Value) {
    let schema = resolve(schema, root);
    match shape {
        Value::Object(fields) => {
            for (key, inner) in fields {
                let property = schema.pointer(&format!("/properties/{key}"));
                let Some(property) = property else {
                    panic!("{at}/{key} stands in the document and not in the code: {schema:#}")
                };
                compare(&format!("{at}/{key}"), inner, property, root);
            }
        }
        Value::Array(items) => {
            if let (Some(first @ Value::Object(_)), Some(items)) = (items.first(), schema.get("items")) {
                compare(at, first, items, root);
            }
        }
        Value::String(word) if word.contains(" | ") => {
            let mut document: Vec<&str> = word.split(" | ").collect();
            if OPEN.contains(&at) {
                return;
            }
            let mut code = words(schema).unwrap_or_else(|| panic!("{at}: the code has no closed set: {schema:#}"));
            document.sort_unstable();
            code.sort_unstable();
            assert_eq!(code, document, "{at}");
        }
        _ => {}
    }
}

#[test]
fn names_and_closed_sets_are_the_documents() {
    let schemas = schema::all();
    for (name, shape) in shapes() {
        let (_, schema) = schemas
            .iter()
            .find(|(stem, _)| *stem == name)
            .expect("a schema for every shape");
        compare(&name, &shape, schema, schema);
    }
}

#[test]
fn words_of_the_open_sets_are_known() {
    let of = |wanted: &str, field: &str| {
        let (_, shape) = shapes().into_iter().find(|(name, _)| name == wanted).unwrap();
        shape[field]
            .as_str()
            .unwrap()
            .split(" | ")
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(of("artifact_ref", "type"), ArtifactRef::BUILT_IN_TYPES);
    for word in of("catalog_projection_event", "event_type") {
        let parsed: ProjectionEventType = serde_json::from_value(json!(word)).unwrap();
        assert!(!matches!(parsed, ProjectionEventType::Other(_)), "{word}");
    }
}
