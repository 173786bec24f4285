//! Gates behind which nothing can start any more: not asked, taken back, asked again in the next run. And
//! the same as an invariant of every step, computed from the store and the plan in the plainest way.

use std::collections::{BTreeMap, BTreeSet};

use control_plane_operation::row::NodeRunRow;
use control_plane_operation::{
    CommandAnswer, CommandKind, Decision, EventKind, GateState, Input, NodeReason, NodeState, OperationStatus,
    RefusalCode, RetrySelection, accept_of,
};
use control_plane_plan::{Accept, GateClaims, Need, NodeKind, OnFailure, Plan, PlanNode};

use crate::carrying_on::all_failed;
use crate::plans::{Plans, plan};
use crate::world::World;

/// A gate waits only while something behind it can start, and is withdrawn only when nothing can.
pub fn only_gates_that_matter_wait(world: &World, decision: &Decision) {
    let operation = world.store.operation.as_ref().unwrap();
    let plan = world.state.plan().plan();
    let latest = world.store.latest();
    let withdrawn = |gate: &str| {
        decision
            .events
            .iter()
            .any(|event| matches!(&event.kind, EventKind::GateWithdrawn { node, .. } if node == gate))
    };
    let open = |gate: &str| {
        let mut askings = world.store.gates.values();
        askings.any(|asking| asking.node == gate && asking.state == GateState::Open)
    };
    let gates = plan.nodes.iter().filter(|node| is_gate(node));
    let told: Vec<&PlanNode> = gates.filter(|gate| open(&gate.id) || withdrawn(&gate.id)).collect();
    if told.is_empty() || operation.status.is_end() {
        return;
    }
    let ends = possible_ends(plan, &latest);
    for gate in told {
        let behind = behind(plan, &gate.id);
        let may = |id: &&&str| !latest[**id].state.is_end() && !only_skipped(&ends[**id]);
        let waiting: Vec<&&str> = behind.iter().filter(may).collect();
        let asked_for_itself = behind.is_empty();
        if withdrawn(&gate.id) {
            assert!(!asked_for_itself);
            assert_eq!(
                waiting,
                Vec::<&&str>::new(),
                "{} was withdrawn, and these could start",
                gate.id
            );
        } else {
            assert!(
                asked_for_itself || !waiting.is_empty(),
                "{} waits for a decision that lets nothing start",
                gate.id
            );
        }
    }
}

const fn is_gate(node: &PlanNode) -> bool {
    matches!(node.action, NodeKind::Gate(_))
}

const fn is_join(node: &PlanNode) -> bool {
    matches!(node.action, NodeKind::Join)
}

/// Jobs and updates behind a gate, and gates behind which the plan has nothing; not what only handles its
/// rejection, nor what does not care how it ends.
fn behind<'p>(plan: &'p Plan, gate: &str) -> BTreeSet<&'p str> {
    let mut reached: BTreeSet<&str> = BTreeSet::from([gate]);
    let mut found = BTreeSet::new();
    for node in &plan.nodes {
        let leads = |need: &Need| {
            let takes = |end| need.accept.contains(&end);
            let cares = takes(Accept::Succeeded) && !(takes(Accept::Failed) && takes(Accept::Skipped));
            let of_gate = is_gate(plan.node(&need.node).unwrap());
            reached.contains(need.node.as_str()) && (!of_gate || is_join(node) || cares)
        };
        if !node.needs.iter().any(leads) {
            continue;
        }
        reached.insert(&node.id);
        let last = is_gate(node) && behind(plan, &node.id).is_empty();
        if last || !(is_gate(node) || is_join(node)) {
            found.insert(node.id.as_str());
        }
    }
    found
}

const ALL: [Accept; 6] = [
    Accept::Succeeded,
    Accept::Failed,
    Accept::TimedOut,
    Accept::Skipped,
    Accept::Cancelled,
    Accept::Lost,
];

fn only_skipped(ends: &BTreeSet<Accept>) -> bool {
    ends.iter().eq([&Accept::Skipped])
}

/// How each node may yet end, as far as the ends of others rule it out.
fn possible_ends<'p>(plan: &'p Plan, latest: &BTreeMap<&str, &NodeRunRow>) -> BTreeMap<&'p str, BTreeSet<Accept>> {
    let mut ends: BTreeMap<&str, BTreeSet<Accept>> = BTreeMap::new();
    let mut shut: BTreeSet<&str> = BTreeSet::new();
    for node in &plan.nodes {
        let row = latest[node.id.as_str()];
        let needs = || node.needs.iter();
        if needs().any(|need| shut.contains(need.node.as_str()) || shuts(plan, need, latest)) {
            shut.insert(&node.id);
        }
        let own = |need: &&Need| {
            let needed = plan.node(&need.node).unwrap();
            needed.item.is_some() && needed.template_node == node.template_node
        };
        let skipped = if is_join(node) {
            needs().filter(own).all(|need| only_skipped(&ends[need.node.as_str()]))
        } else {
            let met = |need: &Need| ends[need.node.as_str()].iter().any(|end| need.accept.contains(end));
            node.skipped || shut.contains(node.id.as_str()) || !needs().all(met)
        };
        let possible = match accept_of(row.state, row.reason) {
            Some(end) => BTreeSet::from([end]),
            None if skipped => BTreeSet::from([Accept::Skipped]),
            None => BTreeSet::from(ALL),
        };
        ends.insert(&node.id, possible);
    }
    ends
}

/// Whether a need is a gate that has ended without letting anything through. What is behind a withdrawn
/// one cannot start for other reasons.
fn shuts(plan: &Plan, need: &Need, latest: &BTreeMap<&str, &NodeRunRow>) -> bool {
    let row = latest[need.node.as_str()];
    let lets_through = match row.state {
        NodeState::Succeeded => true,
        NodeState::Skipped => matches!(row.reason, Some(NodeReason::Condition | NodeReason::NothingBehind)),
        _ => !row.state.is_end(),
    };
    is_gate(plan.node(&need.node).unwrap()) && !need.accept.contains(&Accept::Failed) && !lets_through
}

/// `work` needs an approval and the success of `beside`, whose failure the plan takes.
fn beside(plans: Plans) -> Plans {
    plans
        .job("beside", &[])
        .on_failure(OnFailure::Continue)
        .gate("approval", &[])
        .job("work", &["approval", "beside"])
}

fn begun(plans: &Plans) -> World {
    let mut world = World::new(plans.index());
    world.begin();
    world
}

/// By another than the one who approves.
fn retry(world: &mut World, selection: RetrySelection) {
    let kind = CommandKind::Retry {
        selection,
        revision: None,
    };
    let command = world.command("olga", &["operator"], kind);
    let answer = world.tell(&[Input::Command(Box::new(command))]).remove(0).answer;
    assert!(matches!(answer, CommandAnswer::Accepted { .. }), "{answer:?}");
}

fn events(world: &World, wanted: &str) -> usize {
    world
        .events
        .iter()
        .filter(|event| event.kind.as_str() == wanted)
        .count()
}

#[test]
fn an_open_gate_is_withdrawn_when_the_node_behind_it_can_no_longer_start() {
    let mut world = begun(&beside(plan(1)));
    world.submitted();
    let approval = world.approval("approval");
    world.fail("beside");
    assert_eq!(world.node("approval").reason, Some(NodeReason::NothingBehind));
    assert_eq!(
        world.node("approval").message.as_deref(),
        Some("nothing behind it can start any more")
    );
    assert_eq!(
        world.node("work").reason,
        Some(NodeReason::NeedsNotMet),
        "its own reason, not the gate's"
    );
    let asking = world.store.gates.values().next().unwrap();
    assert_eq!((asking.state, &asking.decided_by), (GateState::Withdrawn, &None));
    assert_eq!(events(&world, "gate_withdrawn"), 1);
    assert_eq!(world.status(), OperationStatus::Failed, "it waits for nobody");
    assert_eq!(world.refused(approval).code, RefusalCode::GateNotOpen);
}

#[test]
fn a_gate_whose_turn_comes_when_nothing_behind_it_can_start_is_never_opened() {
    let plans = plan(1)
        .job("beside", &[])
        .on_failure(OnFailure::Continue)
        .job("check", &[])
        .gate("approval", &["check"])
        .job("work", &["approval", "beside"]);
    let mut world = begun(&plans);
    world.submitted();
    world.fail("beside");
    world.succeed("check");
    assert_eq!(world.node("approval").reason, Some(NodeReason::NothingBehind));
    assert!(world.store.gates.is_empty());
    assert_eq!(world.status(), OperationStatus::Failed);
}

#[test]
fn a_withdrawn_gate_is_asked_again_in_the_run_that_needs_it() {
    let mut world = begun(&beside(plan(1)));
    world.submitted();
    world.fail("beside");
    world.crash();
    retry(&mut world, RetrySelection::AllFailed);
    world.grant();
    world.validate();
    assert_eq!(world.submitted(), ["beside"]);
    world.open_gate("approval");
    world.succeed("beside");
    assert_eq!(world.status(), OperationStatus::WaitingGate);
    world.approve("approval");
    assert_eq!(world.submitted(), ["work"]);
    world.succeed("work");
    assert_eq!(world.status(), OperationStatus::Succeeded);
    assert_eq!(world.store.gates.len(), 2, "both askings are kept");
}

#[test]
fn field_note_20_what_begins_anew_far_behind_a_withdrawn_gate_waits_for_it_again() {
    let plans = plan(1)
        .job("one", &[])
        .on_failure(OnFailure::Continue)
        .job("two", &[])
        .on_failure(OnFailure::Continue)
        .gate("approval", &[])
        .job("work", &["approval", "one"])
        .job("tidy", &["work:succeeded|skipped", "two"]);
    let mut world = begun(&plans);
    world.submitted();
    world.fail("one");
    assert_eq!(world.status(), OperationStatus::Running);
    world.open_gate("approval");
    world.fail("two");
    assert_eq!(
        world.node("approval").reason,
        Some(NodeReason::NothingBehind),
        "tidy was the last that could"
    );
    retry(&mut world, RetrySelection::Nodes(vec!["two".into()]));
    world.grant();
    world.validate();
    assert_eq!(world.submitted(), ["two"]);
    world.succeed("two");
    assert_eq!(world.submitted(), Vec::<String>::new(), "nobody has approved");
    assert_eq!(world.status(), OperationStatus::WaitingGate);
    world.approve("approval");
    assert_eq!(world.submitted(), ["tidy"]);
}

#[test]
fn skipping_the_only_node_behind_a_gate_withdraws_it() {
    let mut world = begun(&plan(1).gate("approval", &[]).job("work", &["approval"]));
    world.accept(CommandKind::Skip { node: "work".into() });
    assert_eq!(world.node("approval").reason, Some(NodeReason::NothingBehind));
    assert_eq!(
        world.status(),
        OperationStatus::Succeeded,
        "who skips a node answers for it"
    );
}

#[test]
fn a_skip_of_what_the_node_behind_a_gate_needs_leaves_the_run_not_green() {
    let plans = plan(1)
        .gate("first", &[])
        .job("beside", &["first"])
        .gate("approval", &[])
        .job("work", &["approval", "beside"]);
    let mut world = begun(&plans);
    world.accept(CommandKind::Skip { node: "beside".into() });
    assert_eq!(world.node("approval").reason, Some(NodeReason::NothingBehind));
    assert_eq!(world.node("first").reason, Some(NodeReason::NothingBehind));
    assert_eq!(
        world.status(),
        OperationStatus::Failed,
        "work was wanted and did not start"
    );
    let code = world.refused(all_failed()).code;
    assert_eq!(code, RefusalCode::NothingToRetry, "a gate alone opens no run");
}

#[test]
fn a_gate_is_asked_as_long_as_anything_behind_it_can_start() {
    let plans = beside(plan(1)).job("more", &["approval"]);
    let mut world = begun(&plans);
    world.submitted();
    world.fail("beside");
    assert_eq!(world.status(), OperationStatus::WaitingGate);
    world.approve("approval");
    assert_eq!(world.submitted(), ["more"]);
}

#[test]
fn what_handles_a_rejection_is_nothing_to_ask_for() {
    let plans = beside(plan(1))
        .job("told", &["approval:failed"])
        .job("always", &["approval:succeeded|failed|skipped", "beside:failed"]);
    let mut world = begun(&plans);
    world.submitted();
    world.fail("beside");
    assert_eq!(world.node("approval").reason, Some(NodeReason::NothingBehind));
    assert_eq!(
        world.node("told").reason,
        Some(NodeReason::NeedsNotMet),
        "nobody rejected"
    );
    assert_eq!(world.submitted(), ["always"]);
}

#[test]
fn gates_one_behind_the_other_are_withdrawn_together() {
    let plans = plan(1)
        .job("beside", &[])
        .on_failure(OnFailure::Continue)
        .gate("outer", &[])
        .gate("inner", &["outer"])
        .job("work", &["inner", "beside"]);
    let mut world = begun(&plans);
    world.submitted();
    world.open_gate("outer");
    world.fail("beside");
    for gate in ["outer", "inner"] {
        assert_eq!(world.node(gate).reason, Some(NodeReason::NothingBehind));
    }
    assert_eq!(world.status(), OperationStatus::Failed);
}

#[test]
fn a_gate_that_the_plan_puts_nothing_behind_is_asked_for_its_own_sake() {
    let mut world = begun(&plan(1).job("work", &[]).gate("sign_off", &["work"]));
    world.submitted();
    world.succeed("work");
    assert_eq!(world.status(), OperationStatus::WaitingGate);
    world.approve("sign_off");
    assert_eq!(world.status(), OperationStatus::Succeeded);
}

#[test]
fn a_gate_is_withdrawn_during_a_pause_and_with_its_claims_let_go() {
    let plans = beside(plan(1))
        .gate("other", &["beside"])
        .gate_with(|gate| gate.claims = GateClaims::Release);
    let mut world = begun(&plans);
    world.submitted();
    world.accept(CommandKind::Pause);
    world.fail("beside");
    assert_eq!(world.node("approval").reason, Some(NodeReason::NothingBehind));
    assert_eq!(
        world.status(),
        OperationStatus::Failed,
        "nothing is left that a pause could hold"
    );
}

#[test]
fn a_decision_that_comes_with_the_failure_is_taken_or_refused_by_what_came_first() {
    for approval_first in [true, false] {
        let mut world = begun(&beside(plan(1)));
        world.submitted();
        let approval = world.approval("approval");
        let command = Input::Command(Box::new(world.command("anna", &["approver"], approval)));
        let result = Input::AttemptResult(Box::new(world.result("beside", &crate::world::End::Failure)));
        let inputs = if approval_first {
            [command, result]
        } else {
            [result, command]
        };
        world.tell(&inputs);
        let state = world.store.gates.values().next().unwrap().state;
        let expected = if approval_first {
            GateState::Passed
        } else {
            GateState::Withdrawn
        };
        assert_eq!(state, expected);
        assert_eq!(world.status(), OperationStatus::Failed);
    }
}
