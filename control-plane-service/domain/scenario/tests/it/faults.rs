use control_plane_scenario::{FaultCode, Pack};
use proptest::prelude::*;

use super::{faults_of, files, told};

pub const SMALLEST: &str = "name: t
requirements:
  web: {resource_type: compute.node}
nodes:
  - id: a
    kind: job
    job: {type: ansible, targets: web, parameters: {playbook: site.yml}}
";

#[test]
fn the_smallest_template_has_no_fault() {
    assert_eq!(faults_of(SMALLEST), Vec::<String>::new());
}

/// Several independent faults, in several parts of the file: all are told, in the order of the file.
#[test]
fn field_note_32_every_fault_of_a_malformed_pack_is_told_with_its_line() {
    let faults = faults_of(
        "name: T t
titel: x
parameters:
  port:
    schema: {type: intger}
  size:
    schema: {type: integer}
    default: big
requirements:
  web:
    resource_type: compute.node
    count: many
    relation: {edge: member_of, slot: cluster}
lanes:
  l: {slot: wbe}
nodes:
  - id: a
    kind: job
    needs: [c]
    when: parameters.prt > 1
    job:
      type: ansible
      targets: web
      retry: retry/nope
      parameters: {playbook: missing.yml, colour: red}
  - id: a
    kind: job
    job: {type: helm, targets: web, parameters: {}}
  - id: b
    kind: approval
    gate: {role: boss, role: king}
    needs: [d]
",
    );
    assert_eq!(
        faults,
        [
            "1:7 invalid_value",
            "2:1 unknown_field",
            "5:13 bad_schema",
            "8:14 invalid_value",
            "12:12 wrong_type",
            "13:39 unknown_slot",
            "15:13 unknown_slot",
            "19:13 unknown_node",
            "20:11 unknown_parameter",
            "24:14 unknown_retry_policy",
            "25:19 job_parameters",
            "25:30 missing_content",
            "26:9 duplicate_name",
            "28:17 job_type_unavailable",
            "31:18 invalid_value",
            "31:24 duplicate_key",
            "32:13 unknown_node",
        ]
    );
}

#[test]
fn field_note_32_an_indent_that_hides_an_action_is_a_fault() {
    let job_too_far_left = "name: t
requirements:
  web: {resource_type: compute.node}
nodes:
  - id: a
    kind: job
job: {type: ansible, targets: web, parameters: {playbook: site.yml}}
";
    assert_eq!(faults_of(job_too_far_left), ["5:5 missing_field", "7:1 unknown_field"]);
    let missing_dash = "name: t
requirements:
  web: {resource_type: compute.node}
nodes:
  - id: a
    kind: job
    job: {type: ansible, targets: web, parameters: {playbook: site.yml}}
    id: b
    kind: approval
    gate: {}
";
    assert_eq!(
        faults_of(missing_dash),
        ["8:5 duplicate_key", "9:5 duplicate_key", "10:11 unknown_field"]
    );
    let nodes_left_empty = "name: t\nnodes:\nid: a\n";
    assert_eq!(faults_of(nodes_left_empty), ["2:6 wrong_type", "3:1 unknown_field"]);
}

#[test]
fn field_note_32_needs_in_a_circle_are_a_fault_that_names_the_circle() {
    let circle = "name: t
nodes:
  - {id: a, kind: approval, gate: {}, needs: [c]}
  - {id: b, kind: approval, gate: {}, needs: [a]}
  - {id: c, kind: approval, gate: {}, needs: [b]}
  - {id: d, kind: approval, gate: {}, needs: [c]}
";
    let faults = Pack::read(&super::bundle(circle)).unwrap_err();
    assert_eq!(faults.len(), 1);
    assert_eq!((faults[0].code, faults[0].at.line), (FaultCode::Cycle, 3));
    assert!(faults[0].message.ends_with("a → c → b → a"), "{}", faults[0].message);
}

#[test]
fn expressions_read_only_what_is_there() {
    let template = |when: &str| {
        format!(
            "name: t
parameters: {{n: {{schema: {{type: integer}}}}}}
requirements: {{web: {{resource_type: compute.node}}}}
nodes:
  - {{id: a, kind: approval, gate: {{}}}}
  - {{id: z, kind: approval, gate: {{}}}}
  - id: b
    needs: [a]
    when: {when}
    kind: job
    job: {{type: ansible, targets: web, parameters: {{playbook: site.yml}}}}
"
        )
    };
    for (when, fault) in [
        ("parameters.n > 1 && nodes.a.status == 'succeeded'", None),
        ("size(slots.web) > 0", None),
        ("parameters.m > 1", Some("unknown_parameter")),
        ("slots.db == 1", Some("unknown_slot")),
        ("nodes.q.status == 'x'", Some("unknown_node")),
        ("nodes.z.status == 'x'", Some("unknown_node")),
        ("item.id == 'x'", Some("bad_expression")),
        ("host.id == 'x'", Some("bad_expression")),
        ("slots.web[0].id == nodes.a.status", Some("bad_expression")),
        ("parameters.n >", Some("bad_expression")),
        ("now() > 1", Some("bad_expression")),
        ("slots.web.all(x, slots.web.all(y, x == y))", Some("bad_expression")),
    ] {
        let expected: Vec<String> = fault.map(|code| format!("9:11 {code}")).into_iter().collect();
        assert_eq!(faults_of(&template(when)), expected, "{when}");
    }
}

#[test]
fn secret_values_are_refused_and_references_taken() {
    let template = |job: &str| {
        format!(
            "name: t
requirements: {{web: {{resource_type: compute.node}}}}
nodes:
  - id: a
    kind: job
    job:
      type: ansible
      targets: web
{job}
"
        )
    };
    let value = template("      parameters: {playbook: site.yml, extra_vars: {db_password: hunter2}}");
    assert_eq!(faults_of(&value), ["9:66 secret_value"]);
    let no_reference = template("      parameters: {playbook: site.yml}\n      secrets: [{secret_ref: hunter2}]");
    assert_eq!(faults_of(&no_reference), ["10:30 secret_value"]);
    let reference = template(
        "      parameters: {playbook: site.yml}\n      secrets: [{secret_ref: 'vault://ssh/web#key', as: agent}]",
    );
    assert_eq!(faults_of(&reference), Vec::<String>::new());
    let parameter = format!("{SMALLEST}parameters: {{api_token: {{schema: {{type: string}}}}}}\n");
    assert_eq!(faults_of(&parameter), ["8:14 secret_value"]);
}

#[test]
fn a_promise_that_no_node_keeps_is_a_fault() {
    assert_eq!(
        faults_of(&format!("{SMALLEST}provides: [{{slot: web, capability: web.http}}]\n")),
        ["8:12 unprovided"]
    );
    let no_evidence = "name: t
requirements: {web: {resource_type: compute.node}}
nodes:
  - id: a
    kind: resource_update
    update: {slot: web, capabilities: {add: [web.http]}}
";
    assert_eq!(faults_of(no_evidence), ["6:13 unprovided"]);
    let no_check = SMALLEST.replace("parameters:", "output: {evidence: [ok]}, parameters:");
    assert_eq!(faults_of(&no_check), ["7:59 unprovided"]);
}

#[test]
fn files_that_nothing_reads_and_files_that_are_missing_are_faults() {
    let pack = files(&[("template/t.yaml", SMALLEST)]);
    assert_eq!(
        told(Pack::read(&pack).unwrap_err()),
        ["0:0 missing_file", "0:0 unexpected_file", "0:0 missing_file"]
    );
    let key = format!("-----BEGIN OPENSSH {}\n", "PRIVATE KEY-----");
    let pack = files(&[
        ("pack.yaml", "name: p\nversion: 1.0.0\ncontent: content\n"),
        ("content/site.yml", "- hosts: all\n"),
        ("content/key", &key),
        ("templates/t.yaml", SMALLEST),
        ("templates/u.yaml", SMALLEST),
    ]);
    assert_eq!(
        told(Pack::read(&pack).unwrap_err()),
        ["0:0 secret_value", "1:1 duplicate_name"]
    );
}

#[test]
fn a_manifest_is_checked_like_a_template() {
    let pack = files(&[
        (
            "pack.yaml",
            "name: P\nversion: one\ncontent: nowhere\nretry_policies:\n  often: {max_attempts: 0, on: [sometimes]}\n",
        ),
        ("templates/t.yaml", SMALLEST),
    ]);
    assert_eq!(
        told(Pack::read(&pack).unwrap_err()),
        [
            "1:7 invalid_value",
            "2:10 invalid_value",
            "3:10 missing_content",
            "5:3 invalid_value",
            "5:25 invalid_value",
            "5:33 invalid_value",
            "7:63 missing_content",
        ]
    );
}

#[test]
fn values_for_parameters_are_completed_or_refused_all_at_once() {
    let template = format!(
        "{SMALLEST}parameters:
  port: {{schema: {{type: integer, minimum: 1}}, default: 8080}}
  title: {{schema: {{type: string}}}}
"
    );
    let pack = Pack::read(&super::bundle(&template)).unwrap();
    let given = |value: serde_json::Value| pack.templates["t"].complete(value.as_object().unwrap());
    let complete = given(serde_json::json!({"title": "x"})).unwrap();
    assert_eq!(
        serde_json::Value::from(complete),
        serde_json::json!({"port": 8080, "title": "x"})
    );
    let faults = given(serde_json::json!({"port": 0, "prt": 1})).unwrap_err();
    let told: Vec<_> = faults.iter().map(|f| (f.pointer.as_str(), f.code)).collect();
    assert_eq!(
        told,
        [
            ("/prt", "unknown_parameter"),
            ("/port", "invalid_parameter"),
            ("/title", "missing_parameter")
        ]
    );
}

proptest! {
    /// Any cut and any swapped line of a valid template gives a pack or faults, never a panic.
    #[test]
    fn a_mangled_template_gives_faults(cut in 0..200_usize, line in 0..7_usize, indent in 0..5_usize) {
        let mut lines: Vec<String> = SMALLEST.lines().map(str::to_owned).collect();
        lines[line] = format!("{}{}", " ".repeat(indent), lines[line].trim_start());
        let text: String = lines.join("\n").chars().take(cut).collect();
        let _ = Pack::read(&super::bundle(&text));
    }
}
