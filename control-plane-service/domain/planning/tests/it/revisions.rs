use control_plane_planning::{PlanningError, diff, replan};
use serde_json::json;

use crate::world::{capability, host, object, pack, plan_of};

const TEMPLATE: &str = "name: t
parameters:
  port: {schema: {type: integer}, default: 8080}
  note: {schema: {type: string}, default: x}
requirements:
  web: {resource_type: compute.node, count: 2, capabilities: [os.linux]}
nodes:
  - {id: early, kind: approval, gate: {}}
  - id: roll
    kind: job
    needs: [early]
    for_each: {slot: web, max_parallel: 1}
    job: {type: ansible, parameters: {playbook: site.yml, extra_vars: {port: '${parameters.port}', address: '${item.connection.address}'}}}
  - {id: late, kind: approval, needs: [roll], gate: {}}
";

#[test]
fn another_parameter_makes_another_revision_with_the_same_bindings() {
    let pack = pack(TEMPLATE);
    let template = &pack.templates["t"];
    let before = plan_of(
        TEMPLATE,
        &json!({"note": "kept"}),
        vec![host("a"), host("b"), host("c")],
    );
    let mut now = vec![host("c"), host("b"), host("a")];
    now[2].capabilities.push(capability("web.http", "1"));
    let after = replan(&before, template, &object(&json!({"port": 9090})), &now).unwrap();
    assert_eq!(
        (&after.plan().slots, &after.plan().claims),
        (&before.slots, &before.claims)
    );
    assert_eq!(after.plan().parameters["note"], "kept");
    let difference = diff(&before, after.plan()).unwrap();
    assert_eq!(difference.parameters, ["port"]);
    assert!(difference.slots.is_empty() && difference.added.is_empty() && difference.removed.is_empty());
    let changed: Vec<(&str, Vec<&str>)> = difference
        .changed
        .iter()
        .map(|c| (c.node.as_str(), c.fields.iter().map(String::as_str).collect()))
        .collect();
    let field = "/action/parameters/extra_vars/port";
    assert_eq!(changed, [("roll[node/a]", vec![field]), ("roll[node/b]", vec![field])]);
    let gates: Vec<&str> = difference.gates.iter().map(|g| g.gate.as_str()).collect();
    assert_eq!(gates, ["early", "late"], "a changed parameter asks every gate again");
}

#[test]
fn nothing_changed_is_the_same_plan() {
    let pack = pack(TEMPLATE);
    let hosts = vec![host("a"), host("b")];
    let before = plan_of(TEMPLATE, &json!({}), hosts.clone());
    let after = replan(&before, &pack.templates["t"], &object(&json!({})), &hosts).unwrap();
    assert_eq!(after.plan(), &before);
    assert!(diff(&before, after.plan()).unwrap().is_empty());
}

#[test]
fn a_new_revision_refuses_what_a_first_one_would() {
    let pack = pack(TEMPLATE);
    let before = plan_of(TEMPLATE, &json!({}), vec![host("a"), host("b")]);
    let set = |value| replan(&before, &pack.templates["t"], &object(&value), &[host("a"), host("b")]);
    assert!(matches!(set(json!({"port": "x"})), Err(PlanningError::Parameters(_))));
    assert!(matches!(set(json!({"prt": 1})), Err(PlanningError::Parameters(_))));
    let gone = replan(&before, &pack.templates["t"], &object(&json!({})), &[host("a")]).unwrap_err();
    assert_eq!(gone.to_string(), "node/b, which the plan is bound to, is gone");
}
