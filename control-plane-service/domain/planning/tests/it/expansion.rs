use control_plane_plan::{GateClaims, NodeKind};
use control_plane_planning::PlanningError;
use serde_json::json;

use crate::world::{Words, host, ids, needs, plan_of, planned, with_slot, world};

const LANES: &str = "name: t
parameters:
  port: {schema: {type: integer}, default: 8080}
requirements:
  web: {resource_type: compute.node, count: all}
lanes:
  hosts: {slot: web, max_parallel: 1}
nodes:
  - id: check
    kind: job
    job:
      type: verification
      targets: web
      parameters: {checks: [{type: value_check, name: c, capability: os.linux, value: 1, equals: 1}]}
  - {id: approve, kind: approval, needs: [check], gate: {message: 'port ${parameters.port}'}}
  - id: roll
    title: Roll ${item.name}
    kind: job
    needs: [approve]
    for_each: {lane: hosts}
    job:
      type: ansible
      parameters:
        playbook: site.yml
        extra_vars: {address: '${item.connection.address}', port: '${parameters.port}', n: '${item.index}'}
  - id: verify
    kind: job
    for_each: {lane: hosts}
    needs: [{node: roll, each: same}]
    job:
      type: verification
      parameters: {checks: [{type: value_check, name: v, capability: web.http, value: 1, equals: '${nodes.roll.exit.code}'}]}
      output: {capabilities: [web.http], evidence: [v]}
  - id: publish
    kind: resource_update
    for_each: {lane: hosts}
    needs: [{node: verify, each: same}]
    update:
      capabilities: {add: [web.http], attributes: {web.http: {port: '${parameters.port}', at: '${nodes.verify.exit.code}'}}}
      evidence_from: [verify, check]
  - {id: after, kind: approval, needs: [publish], gate: {}}
";

#[test]
fn a_template_becomes_a_dag_of_items_joins_and_barriers() {
    let plan = plan_of(LANES, &json!({}), vec![host("b"), host("a")]);
    let told: Vec<String> = plan
        .nodes
        .iter()
        .map(|node| format!("{} <- {}", node.id, needs(node)))
        .collect();
    let every = "(succeeded|failed|timed_out|skipped|cancelled|lost)";
    assert_eq!(
        told,
        [
            "check <- ".to_owned(),
            "approve <- check".to_owned(),
            "roll[node/a] <- approve".to_owned(),
            "roll[node/b] <- approve".to_owned(),
            format!("roll <- roll[node/a]{every}, roll[node/b]{every}"),
            "verify[node/a] <- roll[node/a]".to_owned(),
            "publish[node/a] <- verify[node/a]".to_owned(),
            "verify[node/b] <- roll[node/b]".to_owned(),
            "publish[node/b] <- verify[node/b]".to_owned(),
            format!("publish <- publish[node/a]{every}, publish[node/b]{every}"),
            "after <- publish".to_owned(),
            format!("verify <- verify[node/a]{every}, verify[node/b]{every}"),
        ]
    );
    let lane = &plan.lanes[0];
    assert_eq!(
        (lane.id.as_str(), lane.max_parallel, lane.max_failures),
        ("hosts", 1, 0)
    );
    let items: Vec<(&str, Vec<&str>)> = lane
        .items
        .iter()
        .map(|item| (item.key.as_str(), item.nodes.iter().map(String::as_str).collect()))
        .collect();
    assert_eq!(
        items,
        [
            ("node/a", vec!["roll[node/a]", "verify[node/a]", "publish[node/a]"]),
            ("node/b", vec!["roll[node/b]", "verify[node/b]", "publish[node/b]"]),
        ]
    );
}

#[test]
fn inputs_are_filled_in_now_or_kept_for_dispatch() {
    let plan = plan_of(LANES, &json!({"port": 9000}), vec![host("a")]);
    let NodeKind::Job(roll) = &plan.node("roll[node/a]").unwrap().action else {
        panic!("a job")
    };
    assert_eq!(
        serde_json::Value::from(roll.parameters.clone()),
        json!({"playbook": "site.yml", "extra_vars": {"address": "127.0.0.11", "port": 9000, "n": 0}})
    );
    assert_eq!(plan.node("roll[node/a]").unwrap().title, "Roll a");
    assert!(roll.deferred.is_empty() && roll.mutating && roll.with_content);
    let NodeKind::Job(verify) = &plan.node("verify[node/a]").unwrap().action else {
        panic!("a job")
    };
    assert_eq!(verify.deferred["/checks/0/equals"], "nodes.roll.exit.code");
    assert_eq!(verify.parameters["checks"][0]["equals"], json!(null));
    let NodeKind::ResourceUpdate(publish) = &plan.node("publish[node/a]").unwrap().action else {
        panic!("an update")
    };
    let pointer = "/provided_capabilities/attributes/web.http/at";
    assert_eq!(publish.deferred[pointer], "nodes.verify.exit.code");
    let changes = serde_json::to_value(&publish.changes).unwrap();
    assert_eq!(
        changes.pointer(pointer),
        Some(&json!(null)),
        "the pointer leads into `changes`"
    );
    assert_eq!(publish.evidence_from, ["verify[node/a]", "check"]);
    assert_eq!(plan.capability_changes.len(), 1);
}

#[test]
fn a_gate_lets_go_of_claims_before_anything_changed_and_holds_them_after() {
    let plan = plan_of(LANES, &json!({}), vec![host("a")]);
    let claims = |id: &str| match &plan.node(id).unwrap().action {
        NodeKind::Gate(gate) => gate.claims,
        other => panic!("{other:?}"),
    };
    assert_eq!(claims("approve"), GateClaims::Release);
    assert_eq!(claims("after"), GateClaims::Hold);
}

#[test]
fn a_list_fans_out_by_its_elements() {
    let template = "name: t
parameters:
  sites: {schema: {type: array}}
nodes:
  - id: look
    kind: job
    for_each: {list: '${parameters.sites}', max_parallel: 2, max_failures: 1}
    job:
      type: verification
      targets: none
      parameters: {checks: [{type: value_check, name: c, capability: site.known, value: '${item.value}', equals: '${item.key}'}]}
";
    let plan = plan_of(template, &json!({"sites": ["east", 7]}), Vec::new());
    assert_eq!(ids(&plan), ["look[7]", "look[east]", "look"]);
    assert_eq!((plan.lanes[0].id.as_str(), plan.lanes[0].max_failures), ("look", 1));
    assert_eq!(
        plan.lanes[0].items.iter().map(|i| i.key.as_str()).collect::<Vec<_>>(),
        ["east", "7"]
    );
    let twice = planned(template, &json!({"sites": ["7", 7]}), &world(Vec::new())).unwrap_err();
    assert!(twice.to_string().contains("holds \"7\" twice"), "{twice}");
}

#[test]
fn a_condition_that_can_be_decided_is_and_one_over_results_waits() {
    let template = "name: t
parameters: {go: {schema: {type: boolean}}}
nodes:
  - {id: a, kind: approval, gate: {}, when: parameters.go}
  - {id: b, kind: approval, gate: {}, needs: [{node: a, accept: [skipped, succeeded]}], when: nodes.a.status == 'succeeded'}
";
    let plan = plan_of(template, &json!({"go": false}), Vec::new());
    let a = plan.node("a").unwrap();
    assert!(a.skipped && a.when.is_none());
    let b = plan.node("b").unwrap();
    assert_eq!(
        (b.skipped, b.when.as_deref()),
        (false, Some("nodes.a.status == 'succeeded'"))
    );
    assert_eq!(needs(b), "a(succeeded|skipped)");
}

#[test]
fn parameters_of_a_job_are_judged_once_they_are_filled_in() {
    let template = format!("{}parameters: {{forks: {{schema: {{}}}}}}\n", with_slot("count: 1")).replace(
        "{playbook: site.yml}",
        "{playbook: site.yml, forks: '${parameters.forks}'}",
    );
    assert!(planned(&template, &json!({"forks": 3}), &world(vec![host("a")])).is_ok());
    let error = planned(&template, &json!({"forks": "many"}), &world(vec![host("a")])).unwrap_err();
    let PlanningError::JobParameters { node, faults } = error else {
        panic!("{error:?}")
    };
    assert_eq!((node.as_str(), faults[0].pointer.as_str()), ("a", "/forks"));
}

#[test]
fn a_plan_of_a_thousand_hosts_is_one_plan() {
    let hosts = (0..1000).map(|n| host(&format!("h{n}")).rack("r")).collect();
    let plan = plan_of(LANES, &json!({}), hosts);
    assert_eq!(plan.nodes.len(), 3 * 1001 + 3);
    assert_eq!(plan.lanes[0].items.len(), 1000);
    let mut seen = std::collections::HashSet::new();
    for node in &plan.nodes {
        assert!(node.needs.iter().all(|need| seen.contains(&need.node)), "{}", node.id);
        seen.insert(node.id.clone());
    }
}
