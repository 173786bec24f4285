//! Who skips a node answers for that node. What needed its success and did not start is not done, and the
//! operation says so: green means done or not needed.

use control_plane_operation::row::{LeftOut, RunFailure};
use control_plane_operation::{
    CommandKind, EventKind, NodeReason, NodeState, OperationStatus, RefusalCode, RetrySelection,
};
use control_plane_plan::OnFailure;

use crate::plans::{Plans, plan};
use crate::world::World;

fn skip(node: &str) -> CommandKind {
    CommandKind::Skip { node: node.into() }
}

fn retry(nodes: &[&str]) -> CommandKind {
    let selection = match nodes {
        [] => RetrySelection::AllFailed,
        nodes => RetrySelection::Nodes(nodes.iter().map(|node| (*node).to_owned()).collect()),
    };
    CommandKind::Retry {
        selection,
        revision: None,
    }
}

fn left_out(world: &World) -> LeftOut {
    match world.state.operation().progress.failure.clone() {
        Some(RunFailure::LeftOut(left_out)) => left_out,
        other => panic!("nothing was left out: {other:?}"),
    }
}

/// `work` fails and is held.
fn held(plans: Plans) -> World {
    let mut world = World::new(plans.index());
    world.begin();
    world.fail("work");
    world
}

#[test]
fn an_operation_whose_nodes_did_not_start_for_want_of_a_skipped_one_is_no_success() {
    let mut world = held(
        plan(1)
            .job("work", &[])
            .on_failure(OnFailure::Hold)
            .job("after", &["work"])
            .job("last", &["after"]),
    );
    world.accept(skip("work"));
    assert_eq!(world.status(), OperationStatus::Failed);
    let told = left_out(&world);
    assert_eq!(
        (told.skipped, told.not_started),
        (vec!["work".into()], vec!["after".into(), "last".into()])
    );
    let detail = world.events.iter().find_map(|event| match &event.kind {
        EventKind::RunEnded { detail, .. } => detail.clone(),
        _ => None,
    });
    let expected = "not started because work was skipped: after, last; a retry that names work runs them";
    assert_eq!(detail.as_deref(), Some(expected));
}

#[test]
fn what_accepts_skipped_runs_and_the_operation_succeeds() {
    let mut world = held(
        plan(1)
            .job("work", &[])
            .on_failure(OnFailure::Hold)
            .job("after", &["work:succeeded|skipped"])
            .job("repair", &["work:failed"]),
    );
    world.accept(skip("work"));
    assert_eq!(
        world.node_state("repair"),
        NodeState::Skipped,
        "nothing is to be repaired"
    );
    world.succeed("after");
    assert_eq!(world.status(), OperationStatus::Succeeded);
}

#[test]
fn a_skip_of_everything_behind_it_is_answered_for_as_well() {
    let plans = plan(1)
        .job("first", &[])
        .job("work", &["first"])
        .job("after", &["work"]);
    let mut world = World::new(plans.index());
    world.begin();
    world.accept(skip("after"));
    world.accept(skip("work"));
    world.succeed("first");
    assert_eq!(world.status(), OperationStatus::Succeeded);
}

#[test]
fn what_was_not_needed_anyway_is_not_left_out() {
    let mut world = held(
        plan(1)
            .job("work", &[])
            .on_failure(OnFailure::Hold)
            .job("not-today", &["work"])
            .with(|node| node.skipped = true),
    );
    world.accept(skip("work"));
    assert_eq!(world.status(), OperationStatus::Succeeded);
}

#[test]
fn what_is_behind_a_gate_that_was_never_asked_for_want_of_a_skipped_node_is_left_out_too() {
    let mut world = held(
        plan(1)
            .job("work", &[])
            .on_failure(OnFailure::Hold)
            .gate("approval", &["work"])
            .job("after", &["approval:succeeded|skipped"]),
    );
    world.accept(skip("work"));
    assert_eq!(world.node("after").reason, Some(NodeReason::GateClosed));
    assert_eq!(world.status(), OperationStatus::Failed);
    assert_eq!(left_out(&world).not_started, ["approval", "after"]);
}

#[test]
fn an_item_that_did_not_start_for_want_of_a_skipped_one_takes_the_success_from_its_fan_out() {
    let plans = plan(2)
        .fan_out("check", 2, &[], None, None)
        .items_with("check", |node| node.on_failure = OnFailure::Hold)
        .fan_out("work", 2, &[], None, Some("check"))
        .job("after", &["work"]);
    let mut world = World::new(plans.index());
    world.begin();
    world.fail("check[web-1]");
    world.accept(skip("check[web-1]"));
    world.succeed("check[web-2]");
    world.succeed("work[web-2]");
    assert_eq!(world.node_state("work"), NodeState::Failed);
    assert_eq!(world.node_state("after"), NodeState::Skipped);
    assert_eq!(world.status(), OperationStatus::Failed);
    assert_eq!(left_out(&world).not_started, ["work[web-1]"]);
}

#[test]
fn a_retry_runs_what_was_left_out_when_it_names_what_was_skipped_and_says_so_when_it_does_not() {
    let mut world = held(
        plan(1)
            .job("work", &[])
            .on_failure(OnFailure::Hold)
            .job("after", &["work"]),
    );
    world.accept(skip("work"));
    let refusal = world.refused(retry(&[]));
    assert_eq!(refusal.code, RefusalCode::NothingToRetry);
    assert!(refusal.remedy.ends_with(": work"), "{}", refusal.remedy);
    let refusal = world.refused(retry(&["after"]));
    assert_eq!(refusal.code, RefusalCode::NeedsNotRetried);
    world.accept(retry(&["work"]));
    world.go_on();
    assert_eq!(world.node_state("after"), NodeState::Succeeded);
    assert_eq!(world.status(), OperationStatus::Succeeded);
}
