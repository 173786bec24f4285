//! The published JSON Schemas (draft 2020-12) of the six contracts, made from the same definitions
//! as the OpenAPI documents.

use serde_json::{Map, Value, json};
use utoipa::PartialSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use crate::{ArtifactRef, CatalogProjectionEvent, EvidenceRef, ExecutionResult, JobSpec, ResourceUpdateCommand};

/// File stem and schema of every contract, in the order of the source document.
#[must_use]
pub fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("job_spec", of::<JobSpec>()),
        ("execution_result", of::<ExecutionResult>()),
        ("artifact_ref", of::<ArtifactRef>()),
        ("evidence_ref", of::<EvidenceRef>()),
        ("resource_update_command", of::<ResourceUpdateCommand>()),
        ("catalog_projection_event", of::<CatalogProjectionEvent>()),
    ]
}

fn of<T: utoipa::ToSchema + PartialSchema>() -> Value {
    let mut dependencies: Vec<(String, RefOr<Schema>)> = Vec::new();
    T::schemas(&mut dependencies);
    dependencies.sort_by(|a, b| a.0.cmp(&b.0));
    let mut document = to_value(&T::schema());
    let definitions: Map<String, Value> = dependencies
        .iter()
        .map(|(name, schema)| (name.clone(), to_value(schema)))
        .collect();
    if let Value::Object(fields) = &mut document {
        fields.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
        fields.insert("title".into(), json!(T::name()));
        if !definitions.is_empty() {
            fields.insert("$defs".into(), Value::Object(definitions));
        }
    }
    relocate(&mut document);
    document
}

fn to_value(schema: &RefOr<Schema>) -> Value {
    serde_json::to_value(schema).unwrap_or(Value::Null)
}

fn relocate(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, item) in fields.iter_mut() {
                if let (true, Value::String(target)) = (key == "$ref", &mut *item) {
                    *target = target.replace("#/components/schemas/", "#/$defs/");
                }
                relocate(item);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(relocate),
        _ => {}
    }
}
