//! Holding a write to the schemas, and only the write.
//!
//! A stored value that a newer schema would refuse stays as it is: a violation that was there before and whose
//! place the write did not touch is not held against the write.

use std::sync::Arc;

use serde_json::Value;

use crate::fault::{Fault, FaultCode};
use crate::schema::{Schema, Violation};

/// Faults of changing `before` (None: there was nothing) to `after`, under all of `schemas`.
#[must_use]
pub fn faults(schemas: &[Arc<Schema>], before: Option<&Value>, after: &Value, pointer: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    for schema in schemas {
        let now = schema.violations(after);
        if now.is_empty() {
            continue;
        }
        let old = before.map(|b| schema.violations(b)).unwrap_or_default();
        for violation in now {
            if before.is_some_and(|b| old.contains(&violation) && untouched(&violation, b, after)) {
                continue;
            }
            let place = format!("{pointer}{}", violation.pointer);
            faults.push(Fault::new(place, FaultCode::SchemaViolation, violation.detail));
        }
    }
    faults
}

/// The same violation of an object or array (something missing, something too many) stands as it stood, whatever
/// else changed inside; a violation of a plain value stands when the value does.
fn untouched(violation: &Violation, before: &Value, after: &Value) -> bool {
    match (before.pointer(&violation.pointer), after.pointer(&violation.pointer)) {
        (Some(Value::Object(_)), Some(Value::Object(_))) | (Some(Value::Array(_)), Some(Value::Array(_))) => true,
        (old, new) => old == new,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Vec<Arc<Schema>> {
        let schema = json!({"properties": {"port": {"maximum": 10}, "name": {"type": "string"}}, "required": ["name"]});
        vec![Arc::new(Schema::compile(&schema, "").unwrap())]
    }

    #[test]
    fn what_was_wrong_before_is_held_only_against_a_write_that_touches_it() {
        let stored = json!({"port": 11});
        assert_eq!(faults(&schema(), Some(&stored), &json!({"port": 11, "x": 1}), "/d"), []);
        let touched = faults(&schema(), Some(&stored), &json!({"port": 12}), "/d");
        assert_eq!(touched.len(), 1);
        assert_eq!(touched[0].pointer, "/d/port");
    }

    #[test]
    fn a_new_value_is_held_to_everything() {
        assert_eq!(faults(&schema(), None, &json!({"port": 11}), "").len(), 2);
        let broken = faults(&schema(), Some(&json!({"name": "a"})), &json!({"name": 1}), "");
        assert_eq!(broken.len(), 1);
    }
}
