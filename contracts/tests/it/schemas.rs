//! The committed JSON Schemas are exactly what the code says, and they accept what the code writes.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::Value;

use crate::strategies;

fn path_of(stem: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("schema")
        .join(format!("{stem}.schema.json"))
}

#[test]
fn committed_schemas_equal_the_code() {
    let regenerate = std::env::var_os("UPDATE_SCHEMAS").is_some();
    for (stem, schema) in contracts::schema::all() {
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        let path = path_of(stem);
        if regenerate {
            fs::write(&path, &text).unwrap();
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == text,
            "{} drifted from the code; run the test with UPDATE_SCHEMAS=1",
            path.display()
        );
    }
}

fn validator(stem: &str) -> jsonschema::Validator {
    let (_, schema) = contracts::schema::all()
        .into_iter()
        .find(|(name, _)| *name == stem)
        .unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

fn accepts(stem: &str, value: &Value) {
    let faults: Vec<String> = validator(stem)
        .iter_errors(value)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{stem}: {faults:?}\n{value:#}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn schemas_accept_whatever_the_code_writes(
        spec in strategies::job_spec(), result in strategies::execution_result(), artifact in strategies::artifact_ref(),
        evidence in strategies::evidence_ref(), command in strategies::resource_update_command(), event in strategies::projection_event(),
    ) {
        accepts("job_spec", &serde_json::to_value(spec).unwrap());
        accepts("execution_result", &serde_json::to_value(result).unwrap());
        accepts("artifact_ref", &serde_json::to_value(artifact).unwrap());
        accepts("evidence_ref", &serde_json::to_value(evidence).unwrap());
        accepts("resource_update_command", &serde_json::to_value(command).unwrap());
        accepts("catalog_projection_event", &serde_json::to_value(event).unwrap());
    }
}

#[test]
fn schemas_refuse_what_is_outside_the_closed_sets() {
    let mut rng = proptest::test_runner::TestRunner::deterministic();
    let spec = strategies::job_spec().new_tree(&mut rng).unwrap().current();
    for (pointer, wrong) in [
        ("/job_type", "puppet"),
        ("/runner/isolation", "vm"),
        ("/operation_id", "nine"),
    ] {
        let mut value = serde_json::to_value(&spec).unwrap();
        *value.pointer_mut(pointer).unwrap() = wrong.into();
        assert!(
            serde_json::from_value::<contracts::JobSpec>(value.clone()).is_err(),
            "{pointer}"
        );
        if pointer != "/operation_id" {
            assert!(!validator("job_spec").is_valid(&value), "{pointer}");
        }
    }
}

use proptest::strategy::ValueTree as _;
