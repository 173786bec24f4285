//! The parameters of jobs, as far as control-plane can tell before a job is submitted.
//!
//! The schemas repeat execution-plane's own reading of `inputs.parameters`, so that a pack's author
//! learns of a fault at `validate` and not when the first job is refused. Values that are only known
//! later are left out of the judgement: a place whose value comes from an expression has no fault.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use contracts::JobType;
use jsonschema::Validator;
use serde_json::Value;

use crate::dynamic::Dynamic;
use crate::reading::compile_schema;

/// One fault in a job's parameters. `pointer` is a JSON Pointer into them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ParameterFault {
    pub pointer: String,
    pub detail: String,
}

struct Schemas {
    jobs: BTreeMap<&'static str, Validator>,
    checks: BTreeMap<String, Validator>,
}

static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| {
    let schema = |text: &str| -> Value { serde_json::from_str(text).expect("the file beside this one is JSON") };
    let validator = |schema: &Value| compile_schema(schema).expect("the file beside this one is a JSON Schema");
    let checks: BTreeMap<String, Value> =
        serde_json::from_str(include_str!("checks.json")).expect("the file beside this one is a JSON object");
    Schemas {
        jobs: BTreeMap::from([
            ("ansible", validator(&schema(include_str!("ansible.json")))),
            ("ssh", validator(&schema(include_str!("ssh.json")))),
            ("verification", validator(&schema(include_str!("verification.json")))),
        ]),
        checks: checks
            .iter()
            .map(|(kind, schema)| (kind.clone(), validator(schema)))
            .collect(),
    }
});

/// Whether packs may use jobs of this type now.
#[must_use]
pub const fn is_available(job_type: JobType) -> bool {
    matches!(job_type, JobType::Ansible | JobType::Ssh | JobType::Verification)
}

/// What is certainly wrong with parameters whose expressions have no value yet.
#[must_use]
pub fn faults_of(job_type: JobType, parameters: &Dynamic) -> Vec<ParameterFault> {
    let mut open = Vec::new();
    let skeleton = skeleton(parameters, &mut String::new(), &mut open);
    faults_in(job_type, &skeleton, &open)
}

/// What is wrong with resolved parameters. Places in `open` (JSON Pointers) are not judged, nor what is
/// below them.
#[must_use]
pub fn faults_in(job_type: JobType, parameters: &Value, open: &[String]) -> Vec<ParameterFault> {
    let mut faults = Vec::new();
    if let Some(validator) = SCHEMAS.jobs.get(job_type.as_str()) {
        judge(validator, parameters, "", &mut faults);
    }
    if job_type == JobType::Ssh {
        exactly_one(parameters, &["commands", "script", "script_file"], "", &mut faults);
    }
    for (index, check) in parameters
        .get("checks")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .enumerate()
    {
        check_faults(check, &format!("/checks/{index}"), open, &mut faults);
    }
    faults.retain(|fault| !is_open(&fault.pointer, open));
    faults.sort();
    faults.dedup();
    faults
}

fn is_open(pointer: &str, open: &[String]) -> bool {
    open.iter().any(|place| {
        pointer
            .strip_prefix(place.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

fn judge(validator: &Validator, value: &Value, below: &str, faults: &mut Vec<ParameterFault>) {
    for error in validator.iter_errors(value) {
        faults.push(ParameterFault {
            pointer: format!("{below}{}", error.instance_path().as_str()),
            detail: error.to_string(),
        });
    }
}

fn check_faults(check: &Value, pointer: &str, open: &[String], faults: &mut Vec<ParameterFault>) {
    if is_open(pointer, open) || is_open(&format!("{pointer}/type"), open) {
        return;
    }
    let fault = |pointer: String, detail: &str| ParameterFault {
        pointer,
        detail: detail.to_owned(),
    };
    let Some(kind) = check.get("type").and_then(Value::as_str) else {
        faults.push(fault(
            pointer.to_owned(),
            "a check is a mapping with `type`, `name` and `capability`",
        ));
        return;
    };
    let Some(validator) = SCHEMAS.checks.get(kind) else {
        let detail = format!(
            "`{kind}` is none of {}",
            SCHEMAS.checks.keys().cloned().collect::<Vec<_>>().join(", ")
        );
        faults.push(fault(format!("{pointer}/type"), &detail));
        return;
    };
    judge(validator, check, pointer, faults);
    if kind == "command_check" {
        exactly_one(check, &["argv", "command"], pointer, faults);
    }
}

fn exactly_one(value: &Value, fields: &[&str], pointer: &str, faults: &mut Vec<ParameterFault>) {
    if fields.iter().filter(|field| value.get(**field).is_some()).count() != 1 {
        faults.push(ParameterFault {
            pointer: pointer.to_owned(),
            detail: format!("exactly one of {} is expected", fields.join(", ")),
        });
    }
}

/// The value with placeholders where an expression stands; their places go into `open`.
fn skeleton(value: &Dynamic, pointer: &mut String, open: &mut Vec<String>) -> Value {
    match value {
        Dynamic::Fixed(value) => value.clone(),
        Dynamic::Whole(_) | Dynamic::Text(_) => {
            open.push(pointer.clone());
            Value::String("…".to_owned())
        }
        Dynamic::List(items) => items
            .iter()
            .enumerate()
            .map(|(index, item)| below(item, &index.to_string(), pointer, open))
            .collect(),
        Dynamic::Map(fields) => fields
            .iter()
            .map(|(key, field)| {
                let token = key.replace('~', "~0").replace('/', "~1");
                (key.clone(), below(field, &token, pointer, open))
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

fn below(value: &Dynamic, token: &str, pointer: &mut String, open: &mut Vec<String>) -> Value {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(token);
    let value = skeleton(value, pointer, open);
    pointer.truncate(length);
    value
}

/// The names of all checks, when they are fixed.
pub(crate) fn names_of_checks(parameters: &Dynamic) -> Option<Vec<String>> {
    let mut open = Vec::new();
    let skeleton = skeleton(parameters, &mut String::new(), &mut open);
    let unknown = |pointer: &String| {
        pointer.is_empty() || pointer == "/checks" || (pointer.starts_with("/checks/") && pointer.ends_with("/name"))
    };
    if open.iter().any(unknown) {
        return None;
    }
    let checks = skeleton.get("checks").and_then(Value::as_array);
    Some(
        checks
            .into_iter()
            .flatten()
            .filter_map(|check| check.get("name").and_then(Value::as_str).map(str::to_owned))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pointers(job_type: JobType, value: &Value, open: &[&str]) -> Vec<String> {
        let open: Vec<String> = open.iter().map(|p| (*p).to_owned()).collect();
        faults_in(job_type, value, &open)
            .into_iter()
            .map(|f| f.pointer)
            .collect()
    }

    #[test]
    fn parameters_are_judged_by_job_type_and_checks_by_their_own() {
        let none: Vec<String> = Vec::new();
        assert_eq!(pointers(JobType::Ansible, &json!({"playbook": "site.yml"}), &[]), none);
        assert_eq!(
            pointers(JobType::Ansible, &json!({"play": "x", "playbook": 1}), &[]),
            ["", "/playbook"]
        );
        assert_eq!(
            pointers(JobType::Ssh, &json!({"commands": ["a"], "script": "b"}), &[]),
            [""]
        );
        assert_eq!(
            pointers(JobType::Ssh, &json!({"commands": [["a", "b"], "c"]}), &[]),
            none
        );
        let checks = json!({"checks": [
            {"type": "api_check", "name": "a", "capability": "web.http", "url": "ftp://x"},
            {"type": "command_check", "name": "b", "capability": "Bad"},
            {"type": "nope", "name": "c", "capability": "x"},
            {"type": "value_check", "name": "d", "capability": "x", "value": 1, "equals": 1},
        ]});
        assert_eq!(
            pointers(JobType::Verification, &checks, &[]),
            ["/checks/0/url", "/checks/1", "/checks/1/capability", "/checks/2/type"]
        );
        assert_eq!(
            pointers(
                JobType::Verification,
                &checks,
                &["/checks/0/url", "/checks/1", "/checks/2"]
            ),
            none
        );
    }

    #[test]
    fn what_an_expression_gives_is_not_judged_before_it_is_known() {
        let parameters = Dynamic::Map(BTreeMap::from([
            ("playbook".to_owned(), Dynamic::parse("${parameters.playbook}").unwrap()),
            ("forks".to_owned(), Dynamic::Fixed(json!("three"))),
        ]));
        let pointers: Vec<_> = faults_of(JobType::Ansible, &parameters)
            .into_iter()
            .map(|f| f.pointer)
            .collect();
        assert_eq!(pointers, ["/forks"]);
    }
}
