use control_plane_plan::NodeKind;
use control_plane_planning::pin_of;
use serde_json::json;

use crate::world::{Words, host, needs, plan_of, planned, with_slot, world};

const FAN_OUT: &str = "name: t
parameters: {go: {schema: {type: boolean}, default: true}}
requirements:
  web: {resource_type: compute.node, count: {min: 0, max: 5}}
nodes:
  - id: roll
    kind: job
    when: parameters.go
    for_each: {slot: web}
    job: {type: ansible, parameters: {playbook: site.yml}}
  - {id: strict, kind: approval, gate: {}, needs: [roll]}
  - {id: lenient, kind: approval, gate: {}, needs: [{node: roll, accept: [succeeded, skipped]}]}
  - id: whole
    kind: job
    job: {type: ansible, targets: web, parameters: {playbook: site.yml}}
";

/// The planning half: items are marked, an empty fan-out still has its join, and what depends on either
/// says whether it accepts a skip.
#[test]
fn field_note_04_a_skipped_or_empty_fan_out_is_skipped_and_hangs_nobody() {
    let skipped = plan_of(FAN_OUT, &json!({"go": false}), vec![host("a"), host("b")]);
    assert!(skipped.node("roll[node/a]").unwrap().skipped && skipped.node("roll[node/b]").unwrap().skipped);
    let empty = plan_of(FAN_OUT, &json!({}), Vec::new());
    let join = empty.node("roll").unwrap();
    assert!(matches!(join.action, NodeKind::Join) && join.needs.is_empty());
    assert_eq!(needs(empty.node("strict").unwrap()), "roll");
    assert_eq!(needs(empty.node("lenient").unwrap()), "roll(succeeded|skipped)");
    assert!(
        empty.node("whole").unwrap().skipped,
        "a job on no target is not run, let alone a success"
    );
}

#[test]
fn field_note_28_a_resource_that_moved_has_another_pin() {
    let template = with_slot("capabilities: [os.linux]");
    let plan = plan_of(&template, &json!({}), vec![host("a")]);
    let (slot, resource) = (&plan.slots[0], &plan.slots[0].resources[0]);
    let same = |candidate| pin_of(&candidate, &slot.pin_capabilities).unwrap() == resource.pin;
    assert!(same(host("a")));
    let mut moved = host("a");
    moved.connection.insert("address".into(), json!("127.0.0.12"));
    assert!(!same(moved));
    let mut upgraded = host("a");
    upgraded.capabilities[0]
        .attributes
        .insert("version".into(), json!("6.2"));
    assert!(!same(upgraded));
}

#[test]
fn field_note_45_names_round_trip_byte_for_byte() {
    let name = "é\u{2603}\u{1f600} \"quoted\" \\ \t $x {{ y }} \u{202e}";
    let template = "name: t
parameters: {names: {schema: {type: array}}, title: {schema: {type: string}}}
nodes:
  - id: look
    title: ${parameters.title} of ${item.key}
    kind: job
    for_each: {list: '${parameters.names}'}
    job:
      type: verification
      targets: none
      parameters: {checks: [{type: value_check, name: '${item.key}', capability: site.known, value: '${parameters.title}', equals: 1}]}
";
    let plan = plan_of(template, &json!({"names": [name], "title": name}), Vec::new());
    let node = plan.node(&format!("look[{name}]")).unwrap();
    assert_eq!(node.title, format!("{name} of {name}"));
    let NodeKind::Job(job) = &node.action else {
        panic!("a job")
    };
    assert_eq!(job.parameters["checks"][0]["name"], json!(name));
    assert_eq!(job.parameters["checks"][0]["value"], json!(name));
    let document = planned(template, &json!({"names": [name], "title": name}), &world(Vec::new()))
        .unwrap()
        .document;
    let again = control_plane_plan::PlanDocument::open(document.bytes().to_vec(), document.digest()).unwrap();
    assert_eq!(again.plan(), document.plan());
}

#[test]
fn what_canonical_json_would_bend_is_refused() {
    let template = format!("{}parameters: {{n: {{schema: {{}}}}}}\n", with_slot("count: 1"));
    let error = planned(
        &template,
        &json!({"n": 9_007_199_254_740_993_u64}),
        &world(vec![host("a").rack("r")]),
    );
    assert!(
        matches!(error, Err(control_plane_planning::PlanningError::Parameters(_))),
        "{error:?}"
    );
}
