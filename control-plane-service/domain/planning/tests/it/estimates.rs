//! How long a plan will take, going by history.

use control_plane_plan::Plan;
use control_plane_planning::{Candidate, Sample, estimate};
use serde_json::json;

use crate::world::{host, plan_of};

const NODES: &str = "name: t
requirements:
  web: {resource_type: compute.node, count: all}
lanes:
  hosts: {slot: web, max_parallel: 1}
nodes:
  - id: look
    kind: job
    job: {type: ssh, targets: web, parameters: {commands: [look]}}
  - {id: approve, kind: approval, needs: [look], gate: {}}
  - id: roll
    kind: job
    needs: [approve]
    for_each: {lane: hosts}
    job: {type: ssh, parameters: {commands: [roll]}}
  - id: sometimes
    kind: job
    needs: [look]
    when: nodes.look.exit.code == 7
    job: {type: ssh, targets: web, parameters: {commands: [more]}}
";

fn hosts() -> Vec<Candidate> {
    ["a", "b", "c"].map(host).to_vec()
}

fn plan() -> Plan {
    plan_of(NODES, &json!({}), hosts())
}

fn sample(node: &str, run: u128, seconds: f64) -> Sample {
    Sample {
        template_node: node.to_owned(),
        run,
        seconds,
    }
}

#[test]
fn without_history_there_is_no_estimate() {
    assert_eq!(estimate(&plan(), &[]), None);
    let of_one_node = [sample("look", 1, 2.0)];
    assert_eq!(
        estimate(&plan(), &of_one_node),
        None,
        "too short would be worse than none"
    );
}

#[test]
fn the_medians_are_put_together_as_the_plan_orders_its_nodes() {
    let history = [
        sample("look", 1, 2.0),
        sample("look", 2, 3.0),
        sample("look", 3, 90.0),
        sample("roll", 1, 10.0),
        sample("roll", 2, 10.0),
    ];
    let found = estimate(&plan(), &history).unwrap();
    assert_eq!(found.seconds, 33, "one look of 3, then three hosts one after the other");
    assert_eq!(found.samples, 3, "it rests on three operations");
}

#[test]
fn a_gate_takes_no_time_and_what_has_never_run_but_may_not_either() {
    let history = [
        sample("look", 1, 1.0),
        sample("roll", 1, 1.0),
        sample("approve", 1, 5_000.0),
    ];
    assert_eq!(estimate(&plan(), &history).unwrap().seconds, 4);
    let mut slow = history.to_vec();
    slow.push(sample("sometimes", 1, 60.0));
    assert_eq!(estimate(&plan(), &slow).unwrap().seconds, 61, "beside the rest");
}

#[test]
fn hosts_of_a_lane_go_side_by_side_as_far_as_it_lets_them() {
    let template = NODES.replace("max_parallel: 1", "max_parallel: 2");
    let plan = plan_of(&template, &json!({}), hosts());
    let history = [sample("look", 1, 1.0), sample("roll", 1, 10.0)];
    assert_eq!(estimate(&plan, &history).unwrap().seconds, 21);
}
