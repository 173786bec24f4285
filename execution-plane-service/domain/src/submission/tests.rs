use serde_json::{Value, json};

use super::*;

fn organization() -> OrganizationId {
    "01890000-0000-7000-8000-000000000001".parse().unwrap()
}

fn ssh_spec() -> Value {
    json!({
        "operation_id": "01890000-0000-7000-8000-0000000000a1",
        "plan_node_id": "restart",
        "attempt_id": "01890000-0000-7000-8000-0000000000a2",
        "job_type": "ssh",
        "runner": {"name": "default", "isolation": "sandbox"},
        "target": {"environment": "demo", "resources": [{
            "resource_id": "node/web-1", "resource_type": "compute.node",
            "connection": {"address": "127.0.0.11", "port": 2222, "user": "demo", "host_keys": ["ssh-ed25519 AAAA"]}
        }]},
        "inputs": {"parameters": {"commands": [["uptime"], "echo done"]}},
        "output_contract": {},
        "controls": {"timeout_seconds": 60}
    })
}

fn with(pointer: &str, value: Value) -> Value {
    let mut spec = ssh_spec();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    spec.pointer_mut(parent).unwrap()[key] = value;
    spec
}

fn checked(spec: Value) -> Result<Checked, Refusal> {
    check(
        serde_json::from_value(spec).unwrap(),
        organization(),
        &SecretRules::default(),
    )
}

fn faults(spec: Value) -> Vec<(String, FaultCode)> {
    match checked(spec) {
        Err(Refusal::Invalid(faults)) => faults.into_iter().map(|fault| (fault.pointer, fault.code)).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_right_spec_is_admitted() {
    checked(ssh_spec()).unwrap().admit(&Known::default()).unwrap();
}

#[test]
fn field_note_02_an_empty_target_list_is_refused() {
    let found = faults(with("/target/resources", json!([])));
    assert_eq!(found, [("/target/resources".into(), FaultCode::Required)]);
}

#[test]
fn job_types_that_this_version_does_not_run_are_said_to_be_so() {
    for (word, job_type) in [
        ("kubernetes", JobType::Kubernetes),
        ("helm", JobType::Helm),
        ("opentofu", JobType::Opentofu),
    ] {
        assert_eq!(
            checked(with("/job_type", json!(word))),
            Err(Refusal::JobTypeNotAvailable(job_type))
        );
    }
}

#[test]
fn every_fault_is_named_at_once_with_its_place() {
    let mut spec = ssh_spec();
    spec["inputs"]["parameters"] = json!({"commands": [[], "ok", 7], "ptty": true, "parallel": 0});
    spec["controls"]["timeout_seconds"] = json!(0);
    spec["controls"]["allowed_commands_ref"] = json!("approved");
    spec["inputs"]["artifacts"] = json!([{"artifact_ref": "http://x"}]);
    let mut found = faults(spec);
    found.sort();
    let pointers: Vec<_> = found.iter().map(|(pointer, _)| pointer.as_str()).collect();
    assert_eq!(
        pointers,
        [
            "/controls/allowed_commands_ref",
            "/controls/timeout_seconds",
            "/inputs/artifacts/0/artifact_ref",
            "/inputs/parameters/commands/0",
            "/inputs/parameters/commands/2",
            "/inputs/parameters/parallel",
            "/inputs/parameters/ptty",
        ]
    );
}

#[test]
fn a_host_without_a_key_is_never_logged_in_to() {
    let pointer = "/target/resources/0/connection/host_keys";
    assert_eq!(
        faults(with(pointer, json!([]))),
        [(pointer.into(), FaultCode::Required)]
    );
    assert_eq!(
        faults(with(pointer, json!(["one\nanother x"]))),
        [(pointer.into(), FaultCode::InvalidValue)]
    );
    let address = "/target/resources/0/connection/address";
    assert_eq!(
        faults(with(address, json!("-oProxyCommand=x"))),
        [(address.into(), FaultCode::InvalidValue)]
    );
}

#[test]
fn another_organization_and_double_targets_are_refused() {
    let other = "01890000-0000-7000-8000-000000000002";
    assert_eq!(
        faults(with("/organization_id", json!(other))),
        [("/organization_id".into(), FaultCode::NotAllowed)]
    );
    let target = ssh_spec()["target"]["resources"][0].clone();
    assert_eq!(
        faults(with("/target/resources", json!([target, target]))),
        [("/target/resources/1/resource_id".into(), FaultCode::Duplicate)]
    );
}

#[test]
fn numbers_that_canonical_json_bends_are_refused() {
    let found = faults(with(
        "/target/resources/0/connection/extra",
        json!(9_007_199_254_740_993_u64),
    ));
    assert_eq!(
        found,
        [("/target/resources/0/connection/extra".into(), FaultCode::InvalidValue)]
    );
}

#[test]
fn what_the_spec_refers_to_must_be_there() {
    let digest = Sha256Digest::of(b"bundle");
    let mut spec = with(
        "/inputs/artifacts",
        json!([{"artifact_ref": "artifact://operation/inventory"}]),
    );
    spec["content"] = json!({"sha256": digest});
    spec["controls"]["allowed_commands_ref"] = json!("policy/approved");
    let checked = checked(spec).unwrap();
    let mut known = Known::default();
    assert!(matches!(checked.admit(&known), Err(Refusal::ContentMissing(_))));
    Arc::make_mut(&mut known.contents).insert(digest);
    assert_eq!(checked.admit(&known), Err(Refusal::ArtifactMissing("inventory".into())));
    known.artifacts.insert("inventory".into());
    assert_eq!(checked.admit(&known), Err(Refusal::UnknownPolicy("approved".into())));
    known.policy = Some(CommandPolicy {
        allow: vec![vec!["uptime".into()]],
        ..CommandPolicy::default()
    });
    let Err(Refusal::CommandNotAllowed { faults, .. }) = checked.admit(&known) else {
        panic!("the shell line is not allowed");
    };
    assert_eq!(faults[0].pointer, "/inputs/parameters/commands/1");
    known.policy = Some(CommandPolicy {
        allow: vec![vec!["*".into(), "...".into()]],
        ..CommandPolicy::default()
    });
    assert_eq!(checked.admit(&known), Ok(()));
    Arc::make_mut(&mut known.runner_names).insert("other".into());
    assert_eq!(checked.admit(&known), Err(Refusal::UnknownRunner("default".into())));
}

#[test]
fn a_playbook_needs_its_bundle_and_stays_inside_it() {
    let mut spec = with("/job_type", json!("ansible"));
    spec["inputs"]["parameters"] = json!({"playbook": "site.yml"});
    assert_eq!(faults(spec.clone()), [("/content".into(), FaultCode::Required)]);
    spec["inputs"]["parameters"] = json!({"playbook": "../site.yml"});
    assert_eq!(
        faults(spec),
        [("/inputs/parameters/playbook".into(), FaultCode::InvalidValue)]
    );
}

#[test]
fn checks_look_only_at_targets_of_their_job() {
    let mut spec = with("/job_type", json!("verification"));
    let check = |target: Value| {
        json!({"checks": [{"name": "up", "capability": "web.http", "type": "command_check",
            "target": target, "argv": ["true"]}]})
    };
    spec["inputs"]["parameters"] = check(json!("node/other"));
    assert_eq!(
        faults(spec.clone()),
        [("/inputs/parameters/checks/0/target".into(), FaultCode::Missing)]
    );
    spec["inputs"]["parameters"] = check(json!("node/web-1"));
    checked(spec.clone()).unwrap();
    spec["target"]["resources"][0]["connection"] = Value::Null;
    assert_eq!(
        faults(spec.clone()),
        [("/target/resources/0/connection".into(), FaultCode::Required)]
    );
    spec["inputs"]["parameters"] = check(Value::Null);
    checked(spec).unwrap();
}

#[test]
fn a_value_check_needs_neither_login_nor_content() {
    let mut spec = with("/job_type", json!("verification"));
    spec["target"]["resources"][0]["connection"] = Value::Null;
    spec["inputs"]["parameters"] = json!({"checks": [
        {"name": "noop", "capability": "platform.noop", "type": "value_check", "value": true, "equals": true}]});
    let checked = checked(spec).unwrap();
    let job::CheckKind::Value(check) = &checked.parameters.checks()[0].kind else {
        panic!("a value check");
    };
    assert_eq!(check.judge(), Ok(()));
}

#[test]
fn a_secret_that_the_organization_may_not_name_is_refused() {
    let spec = with(
        "/inputs/secrets",
        json!([{"secret_ref": "vault://ssh/prod"}, {"secret_ref": "vault://kv/x"}]),
    );
    let rules = SecretRules {
        others: vec!["vault://ssh/".into()],
        ..SecretRules::default()
    };
    let refused = check(serde_json::from_value(spec).unwrap(), organization(), &rules);
    let Err(Refusal::Invalid(faults)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(faults[0].pointer, "/inputs/secrets/1/secret_ref");
    assert_eq!(faults.len(), 1);
}
