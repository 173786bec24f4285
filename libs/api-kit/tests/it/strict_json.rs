use api_kit::{Problem, parse_json};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[allow(dead_code, reason = "only the parsing is looked at")]
struct Order {
    id: u32,
    #[serde(default)]
    lines: Vec<Line>,
    #[serde(default)]
    note: Option<Note>,
}

#[derive(Debug, Deserialize)]
#[allow(dead_code, reason = "only the parsing is looked at")]
struct Line {
    count: u8,
}

#[derive(Debug, Deserialize)]
#[allow(dead_code, reason = "only the parsing is looked at")]
struct Note {
    text: String,
}

fn refused(text: &str) -> Problem {
    parse_json::<Order>(text.as_bytes()).unwrap_err()
}

fn faults(text: &str) -> Vec<(String, String)> {
    let problem = refused(text);
    assert_eq!(problem.code, "validation_failed", "{problem}");
    problem
        .errors
        .into_iter()
        .map(|error| (error.pointer, error.code))
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected
        .iter()
        .map(|(pointer, code)| ((*pointer).to_owned(), (*code).to_owned()))
        .collect()
}

#[test]
fn every_unknown_field_is_named_by_pointer_at_whatever_depth() {
    let text =
        r#"{"x": 1, "id": 1, "lines": [{"count": 1}, {"count": 2, "a/b": 1}], "note": {"text": "", "~": 1}, "y": {}}"#;
    assert_eq!(
        faults(text),
        pairs(&[
            ("/x", "unknown_field"),
            ("/lines/1/a~1b", "unknown_field"),
            ("/note/~0", "unknown_field"),
            ("/y", "unknown_field")
        ])
    );
}

#[test]
fn a_fault_of_type_is_named_by_pointer_beside_the_unknown_fields() {
    assert_eq!(
        faults(r#"{"x": 1, "id": 1, "lines": [{"count": 300}]}"#),
        pairs(&[("/x", "unknown_field"), ("/lines/0/count", "invalid")])
    );
    assert_eq!(
        faults(r#"{"lines": [{}], "id": 1}"#),
        pairs(&[("/lines/0/count", "missing_field")])
    );
    assert_eq!(faults("{}"), pairs(&[("/id", "missing_field")]));
    assert_eq!(faults("[]").len(), 1);
}

#[test]
fn what_is_not_json_is_told_with_its_place() {
    for text in ["", "{", "{\"id\":1}}", "{'id':1}", "{\"id\":1,}", "nul", "\u{feff}{}"] {
        let problem = refused(text);
        assert_eq!(
            (problem.status, problem.code.as_str()),
            (400, "malformed_json"),
            "{text:?}"
        );
        assert!(problem.detail.contains("line 1"), "{problem}");
    }
}

#[test]
fn duplicate_fields_nul_and_bent_numbers_never_get_in() {
    let cases = [
        (
            r#"{"id": 1, "note": {"text": "a", "text": "b"}}"#,
            "/note/text",
            "duplicate_field",
        ),
        (
            r#"{"id": 1, "note": {"text": "a\u0000"}}"#,
            "/note/text",
            "nul_in_string",
        ),
        (
            r#"{"id": 1, "free": [9007199254740993]}"#,
            "/free/0",
            "number_too_large",
        ),
        (
            r#"{"id": 1, "free": {"n": -9007199254740993}}"#,
            "/free/n",
            "number_too_large",
        ),
        (
            r#"{"id": 1, "free": 123456789012345678901}"#,
            "/free",
            "number_too_large",
        ),
    ];
    for (text, pointer, code) in cases {
        let found = faults(text);
        assert!(
            found.contains(&(pointer.to_owned(), code.to_owned())),
            "{text}: {found:?}"
        );
    }
}

#[test]
fn nesting_has_an_end() {
    let deep = format!("{{\"id\": 1, \"free\": {}{}}}", "[".repeat(64), "]".repeat(64));
    let problem = refused(&deep);
    assert_eq!(problem.code, "malformed_json");
    assert!(problem.detail.contains("64 levels"), "{problem}");
    let hostile = "[".repeat(1_000_000);
    assert_eq!(refused(&hostile).code, "malformed_json");
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_fall_over(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_json::<Order>(&bytes);
    }

    #[test]
    fn what_is_accepted_is_what_serde_accepts(text in "\\{(\"id\": ?[0-9]{1,3}(, ?\"note\": ?(null|\\{\"text\":\"[a-z]{0,3}\"\\}))?)?\\}") {
        let strict = parse_json::<Order>(text.as_bytes()).is_ok();
        let plain = serde_json::from_str::<Order>(&text).is_ok();
        prop_assert_eq!(strict, plain);
    }

    #[test]
    fn any_value_of_safe_numbers_passes_as_a_free_value(value in arbitrary_json()) {
        let text = value.to_string();
        prop_assert_eq!(parse_json::<Value>(text.as_bytes()).unwrap(), value);
    }
}

fn arbitrary_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9_007_199_254_740_992_i64..=9_007_199_254_740_992).prop_map(Value::from),
        "[^\\x00]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map("[^\\x00]{0,6}", inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}
