//! JSON Schemas of states and attributes: draft 2020-12, checked as a whole, every violation with
//! its place.
//!
//! Invariants: nothing is ever fetched (a `$ref` beyond the schema itself is a fault of the schema), patterns
//! run in linear time, and a violation's text never repeats the value it is about.

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

use crate::fault::{Fault, FaultCode};
use crate::limits::{MAX_SCHEMA_BYTES, json_bytes, json_faults};

/// A compiled schema.
#[derive(Debug)]
pub struct Schema(Validator);

/// One violation of one schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// JSON Pointer into the checked value.
    pub pointer: String,
    /// What the schema says there, without the value.
    pub detail: String,
}

impl Schema {
    /// Compiles `schema`; `pointer` says where it was sent.
    ///
    /// # Errors
    /// Every place where it is not a schema, or the first where it cannot be compiled.
    pub fn compile(schema: &Value, pointer: &str) -> Result<Self, Vec<Fault>> {
        let bytes = json_bytes(schema);
        if bytes > MAX_SCHEMA_BYTES {
            let detail = format!("{bytes} bytes; a schema has at most {MAX_SCHEMA_BYTES}");
            return Err(vec![Fault::new(pointer, FaultCode::TooLarge, detail)]);
        }
        let faults = json_faults(schema, pointer);
        if !faults.is_empty() {
            return Err(faults);
        }
        if !schema.is_object() {
            let detail = "a schema is a JSON object";
            return Err(vec![Fault::new(pointer, FaultCode::NotAnObject, detail)]);
        }
        let meta = jsonschema::draft202012::meta::validator();
        let faults: Vec<Fault> = meta
            .iter_errors(schema)
            .map(|e| {
                let place = format!("{pointer}{}", e.instance_path());
                Fault::new(place, FaultCode::InvalidSchema, e.masked().to_string())
            })
            .collect();
        crate::fault::none(faults)?;
        jsonschema::options()
            .with_draft(Draft::Draft202012)
            .with_pattern_options(PatternOptions::regex())
            .should_validate_formats(true)
            .offline()
            .build(schema)
            .map(Self)
            .map_err(|e| {
                let place = format!("{pointer}{}", e.instance_path());
                vec![Fault::new(place, FaultCode::InvalidSchema, e.masked().to_string())]
            })
    }

    /// Every violation of this schema by `value`.
    #[must_use]
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        let mut all: Vec<Violation> = self
            .0
            .iter_errors(value)
            .map(|e| Violation {
                pointer: e.instance_path().to_string(),
                detail: e.masked().to_string(),
            })
            .collect();
        all.sort();
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_violation_is_named_with_its_place_and_without_the_value() {
        let schema = json!({
            "type": "object",
            "properties": {"port": {"type": "integer"}, "names": {"items": {"type": "string"}}},
            "required": ["address"]
        });
        let schema = Schema::compile(&schema, "").unwrap();
        let violations = schema.violations(&json!({"port": "s3cret", "names": ["a", 1, {"k": "s3cret"}]}));
        let places: Vec<&str> = violations.iter().map(|v| v.pointer.as_str()).collect();
        assert_eq!(places, ["", "/names/1", "/names/2", "/port"]);
        assert!(
            violations.iter().all(|v| !v.detail.contains("s3cret")),
            "{violations:?}"
        );
    }

    #[test]
    fn a_schema_that_is_none_is_refused_at_its_faults() {
        let faults = Schema::compile(
            &json!({"type": "objekt", "properties": {"a": {"minimum": "x"}}}),
            "/schema",
        )
        .unwrap_err();
        let places: Vec<&str> = faults.iter().map(|f| f.pointer.as_str()).collect();
        assert!(places.contains(&"/schema/type"), "{places:?}");
        assert!(places.contains(&"/schema/properties/a/minimum"), "{places:?}");
    }

    #[test]
    fn nothing_is_fetched_but_local_references_work() {
        for elsewhere in ["http://127.0.0.1:9/x.json", "file:///etc/passwd"] {
            let faults = Schema::compile(&json!({"$ref": elsewhere}), "").unwrap_err();
            assert_eq!(faults[0].code, FaultCode::InvalidSchema);
        }
        let local = json!({"$defs": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/n"}}});
        assert_eq!(
            Schema::compile(&local, "")
                .unwrap()
                .violations(&json!({"a": "x"}))
                .len(),
            1
        );
    }
}
