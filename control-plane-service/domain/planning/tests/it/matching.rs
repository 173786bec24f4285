use contracts::LifecycleStatus;
use serde_json::json;

use crate::world::{Words, bound, capability, edge, host, pack, plan_of, planned, unbound, with_slot, world};

fn bound_of(requirement: &str, candidates: Vec<control_plane_planning::Candidate>) -> Vec<String> {
    bound(&plan_of(&with_slot(requirement), &json!({}), candidates), "web")
}

#[test]
fn a_slot_takes_as_many_as_it_may_best_first() {
    let hosts = || vec![host("c"), host("a").label("tier", "db"), host("b").label("ssd", "yes")];
    assert_eq!(bound_of("count: {min: 1, max: 2}", hosts()), ["node/a", "node/b"]);
    assert_eq!(bound_of("count: all", hosts()), ["node/a", "node/b", "node/c"]);
    assert_eq!(bound_of("selector: '!tier'\ncount: all", hosts()), ["node/b", "node/c"]);
    assert_eq!(
        bound_of(
            "count: 2\nprefer: [{selector: ssd, weight: 5}, {where: resource.name == 'c'}]",
            hosts()
        ),
        ["node/b", "node/c"]
    );
    assert_eq!(
        bound_of(
            "count: all\nmust_not: {selector: tier=db, where: resource.name == 'c'}",
            hosts()
        ),
        ["node/b"]
    );
}

#[test]
fn derived_types_and_children_of_a_capability_count() {
    let mut derived = host("gpu");
    derived.resource_type = "compute.node.gpu".parse().unwrap();
    derived.ancestors.push("compute.node".parse().unwrap());
    derived.capabilities[0].capability = "os.linux.debian".parse().unwrap();
    derived.capabilities[0].implies.push("os.linux".parse().unwrap());
    assert_eq!(
        bound_of("capabilities: [{name: os.linux, version: '>=6'}]", vec![derived]),
        ["node/gpu"]
    );
}

#[test]
fn every_refused_candidate_is_explained_by_its_first_unmet_constraint_and_all_its_changes() {
    let mut old = host("old");
    old.capabilities = vec![capability("os.linux", "5.10.0-28-amd64")];
    let mut bare = host("bare");
    bare.capabilities.clear();
    bare.lifecycle = LifecycleStatus::Maintenance;
    let mut elsewhere = host("elsewhere");
    elsewhere.environment = Some("prod".to_owned());
    let mut odd = host("odd");
    odd.capabilities = vec![capability("os.linux", "rolling")];
    let slot = unbound(
        &with_slot("count: {min: 2, max: 3}\ncapabilities: [{name: os.linux, version: '>=6.1'}]"),
        &world(vec![old, bare, elsewhere, odd, host("good")]),
    );
    let told: Vec<String> = slot
        .refusals
        .iter()
        .map(|r| {
            format!(
                "{}: {} — {} → {}",
                r.resource_id,
                r.constraint,
                r.found,
                r.remedy.as_deref().unwrap()
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "node/bare: lifecycle running — is maintenance → bring it to lifecycle running; provide os.linux >=6.1 on it",
            "node/elsewhere: environment demo — is in environment prod → move it to environment demo",
            "node/odd: capability os.linux >=6.1 — \"rolling\" cannot be read as a version: it does not start with a number → provide os.linux >=6.1 on it",
            "node/old: capability os.linux >=6.1 — has os.linux 5.10.0-28-amd64 → provide os.linux >=6.1 on it",
        ]
    );
    assert_eq!(
        slot.refused_by,
        [
            ("capability os.linux >=6.1".to_owned(), 2),
            ("environment demo".to_owned(), 1),
            ("lifecycle running".to_owned(), 1)
        ]
    );
    assert_eq!(slot.problem.unwrap(), "2 needed, 1 of 5 candidates fit");
    assert_eq!(slot.remedy.unwrap(), "node/elsewhere: move it to environment demo");
    assert_eq!(
        slot.requirement,
        "2–3 compute.node in environment demo, capability os.linux >=6.1"
    );
}

#[test]
fn where_nothing_could_be_changed_more_resources_are_asked_for() {
    let slot = unbound(&with_slot("count: 2"), &world(vec![host("a")]));
    assert_eq!(
        slot.remedy.unwrap(),
        "register 1 more compute.node in environment demo that meets the requirement"
    );
}

#[test]
fn what_the_store_left_out_is_counted() {
    let mut snapshot = world(vec![host("a")]);
    snapshot
        .left_out
        .insert("web".into(), [("environment demo".to_owned(), 41)].into());
    let slot = unbound(&with_slot("count: 2"), &snapshot);
    assert_eq!(slot.candidates_considered, 42);
    assert_eq!(slot.refused_by, [("environment demo".to_owned(), 41)]);
}

const DISTINCT: &str = "count: {min: 2, max: 3}\ndistinct: {edge: [part_of, hosted_on], type: topology.rack}";

#[test]
fn distinct_places_are_assigned_not_grabbed() {
    // `a` comes first and could sit in r1 or r2; `b` and `c` have one rack each.
    let hosts = vec![
        host("a").rack("r1").rack("r2"),
        host("b").rack("r1"),
        host("c").rack("r3"),
        host("d").rack("r3"),
    ];
    assert_eq!(bound_of(DISTINCT, hosts), ["node/a", "node/b", "node/c"]);
}

#[test]
fn a_place_is_found_along_the_edges_that_lead_there() {
    let mut snapshot = world(vec![host("a").rack("r1"), host("b")]);
    snapshot.candidates[1].edges = vec![edge("hosted_on", "node/hypervisor"), edge("depends_on", "rack/r1")];
    let mut hypervisor = snapshot.places[&crate::world::id("rack/r1")].clone();
    hypervisor.resource_type = "compute.node".parse().unwrap();
    hypervisor.edges = vec![edge("part_of", "rack/r2")];
    let rack = snapshot.places[&crate::world::id("rack/r1")].clone();
    snapshot.places.insert(crate::world::id("node/hypervisor"), hypervisor);
    snapshot.places.insert(crate::world::id("rack/r2"), rack);
    let plan = planned(&with_slot(DISTINCT), &json!({}), &snapshot).unwrap();
    assert_eq!(bound(plan.document.plan(), "web"), ["node/a", "node/b"]);
}

#[test]
fn too_few_places_are_said_so_with_the_move_that_helps() {
    let slot = unbound(
        &with_slot(DISTINCT),
        &world(vec![host("a").rack("r1"), host("b").rack("r1"), host("c")]),
    );
    assert_eq!(
        slot.problem.unwrap(),
        "2 needed in different topology.rack, the 2 that fit are in 1"
    );
    assert_eq!(
        slot.remedy.unwrap(),
        "node/b: put it into a topology.rack of its own (edge part_of)"
    );
    assert_eq!(slot.refusals[0].constraint, "in a topology.rack");
}

#[test]
fn the_same_place_is_the_one_with_most_room() {
    let hosts = vec![host("a").rack("r1"), host("b").rack("r2"), host("c").rack("r2")];
    let same = "count: 2\nsame: {edge: part_of, type: topology.rack}";
    assert_eq!(bound_of(same, hosts), ["node/b", "node/c"]);
    let slot = unbound(
        &with_slot(same),
        &world(vec![host("a").rack("r1"), host("b").rack("r2")]),
    );
    assert_eq!(
        slot.problem.unwrap(),
        "2 needed in the same topology.rack, at most 1 that fit are together"
    );
    assert_eq!(slot.remedy.unwrap(), "node/b: put it into rack/r1 (edge part_of)");
}

const RELATED: &str = "name: t
requirements:
  cluster: {resource_type: compute.cluster, claim: read}
  web:
    resource_type: compute.node
    count: 2
    relation: {edge: member_of, slot: cluster}
nodes:
  - id: a
    kind: job
    job: {type: ansible, targets: web, parameters: {playbook: site.yml}}
";

#[test]
fn the_slot_that_others_are_joined_to_is_chosen_so_that_they_can_be() {
    let cluster = |name: &str| {
        let mut cluster = host("x");
        cluster.resource_id = crate::world::id(&format!("cluster/{name}"));
        cluster.uid = crate::world::uid(cluster.resource_id.as_str());
        cluster.resource_type = "compute.cluster".parse().unwrap();
        cluster
    };
    let member = |name: &str, of: &str| {
        let mut member = host(name);
        member.edges.push(edge("member_of", &format!("cluster/{of}")));
        member
    };
    let world = world(vec![
        cluster("a"),
        cluster("b"),
        member("1", "a"),
        member("2", "b"),
        member("3", "b"),
    ]);
    let plan = planned(RELATED, &json!({}), &world).unwrap();
    assert_eq!(bound(plan.document.plan(), "cluster"), ["cluster/b"]);
    assert_eq!(bound(plan.document.plan(), "web"), ["node/2", "node/3"]);
    assert!(plan.slots.iter().all(|slot| slot.satisfied && slot.problem.is_none()));
    let mut short = world.clone();
    short.candidates.pop();
    let slot = unbound(RELATED, &short);
    assert_eq!(slot.remedy.unwrap(), "node/2: add its edge member_of to cluster/a");
}

#[test]
fn attribute_conditions_read_attributes_and_parameters() {
    let template = format!(
        "{}parameters: {{family: {{schema: {{type: string}}}}}}\n",
        with_slot("capabilities: [{name: os.linux, where: \"attributes.family == parameters.family\"}]")
    );
    let mut debian = host("a");
    debian.capabilities[0]
        .attributes
        .insert("family".into(), json!("debian"));
    let plan = plan_of(&template, &json!({"family": "debian"}), vec![debian.clone(), host("b")]);
    assert_eq!(bound(&plan, "web"), ["node/a"]);
    let refused = planned(&template, &json!({"family": "suse"}), &world(vec![debian, host("b")])).unwrap_err();
    let control_plane_planning::PlanningError::Unsatisfiable(slots) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(slots[0].refusals[0].found, "it is false");
    assert!(slots[0].refusals[1].found.contains("No such key: family"));
}

#[test]
fn claims_are_sorted_by_uid_and_the_strongest_mode_wins() {
    let template = "name: t
requirements:
  all: {resource_type: compute.node, count: all, claim: read}
  web: {resource_type: compute.node, count: 2, claim: shared, selector: web}
nodes:
  - {id: g, kind: approval, gate: {}}
";
    let plan = plan_of(
        template,
        &json!({}),
        vec![host("a").label("web", ""), host("b"), host("c").label("web", "")],
    );
    let claims: Vec<String> = plan
        .claims
        .iter()
        .map(|c| format!("{} {:?}", c.resource_id, c.mode))
        .collect();
    let mut sorted = plan.claims.clone();
    sorted.sort_by_key(|claim| claim.uid);
    assert_eq!(plan.claims, sorted);
    assert_eq!(claims.iter().filter(|c| c.ends_with("Shared")).count(), 2);
    assert!(claims.contains(&"node/b Read".to_owned()));
}

#[test]
fn a_pin_covers_the_capabilities_that_the_slot_reads_and_no_others() {
    let template = with_slot("capabilities: [os.linux]\nmust_not: {capabilities: [os.legacy]}");
    let pin = |candidate| plan_of(&template, &json!({}), vec![candidate]).slots[0].resources[0].pin;
    let mut gained = host("a");
    gained.capabilities.push(capability("web.http", "1"));
    assert_eq!(pin(host("a")), pin(gained));
    assert_ne!(pin(host("a")), pin(host("a").label("x", "y")));
    let pack = pack(&template);
    let reads = pack.templates["t"].requirements["web"].capabilities_read();
    assert_eq!(
        reads.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["os.legacy", "os.linux"]
    );
}
