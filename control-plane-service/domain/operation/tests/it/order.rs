//! The order in which siblings finish makes no difference to what becomes of them.

use contracts::JobStarted;
use control_plane_operation::{CommandKind, Input, NodeReason, NodeState, OperationStatus};
use control_plane_plan::OnFailure;

use crate::plans::{Plans, plan};
use crate::world::{End, World};

fn permutations(len: usize) -> Vec<Vec<usize>> {
    if len == 0 {
        return vec![vec![]];
    }
    let mut all = Vec::new();
    for shorter in permutations(len - 1) {
        for place in 0..len {
            let mut longer = shorter.clone();
            longer.insert(place, len - 1);
            all.push(longer);
        }
    }
    all
}

type Ends = Vec<(String, NodeState, Option<NodeReason>)>;

fn outcome(world: &mut World) -> (OperationStatus, Ends) {
    world.go_on();
    let ends = world
        .state
        .node_runs()
        .map(|row| (row.node.clone(), row.state, row.reason));
    (world.status(), ends.collect())
}

/// Tells the ends in every order, one by one and all at once, and compares what becomes of everything.
fn every_order(plans: &Plans, ends: &[(&str, End)]) {
    let mut begun = World::new(plans.index());
    begun.begin();
    let mut outcomes = Vec::new();
    for order in permutations(ends.len()) {
        let results: Vec<Input> = order
            .iter()
            .map(|ix| Input::AttemptResult(Box::new(begun.result(ends[*ix].0, &ends[*ix].1))))
            .collect();
        let mut singly = begun.clone();
        for result in &results {
            singly.tell(core::slice::from_ref(result));
        }
        outcomes.push(outcome(&mut singly));
        let mut at_once = begun.clone();
        at_once.tell(&results);
        outcomes.push(outcome(&mut at_once));
    }
    assert!(outcomes.windows(2).all(|pair| pair[0] == pair[1]), "{outcomes:#?}");
}

#[test]
fn field_note_07_results_do_not_depend_on_the_order_in_which_siblings_finish() {
    let plans = plan(0)
        .job("a", &[])
        .on_failure(OnFailure::Continue)
        .job("b", &[])
        .on_failure(OnFailure::Continue)
        .job("c", &[])
        .on_failure(OnFailure::Continue)
        .job("d", &[])
        .job("all", &["a", "b", "c", "d"])
        .job("any-end", &["a:succeeded|failed", "b:failed|lost", "d"])
        .job("repair", &["b:failed"])
        .job("last", &["any-end", "repair:succeeded|skipped"]);
    every_order(
        &plans,
        &[
            ("a", End::Failure),
            ("b", End::Lost(JobStarted::No)),
            ("c", End::TimedOut),
            ("d", End::Success),
        ],
    );
}

#[test]
fn field_note_07_the_first_failure_of_several_that_stop_the_run_makes_no_difference() {
    let plans = plan(3)
        .fan_out("each", 3, &[], None, None)
        .job("after", &["each"])
        .job("beside", &[])
        .gate("approval", &["beside"]);
    every_order(
        &plans,
        &[
            ("each[web-1]", End::Failure),
            ("each[web-2]", End::Cancelled),
            ("each[web-3]", End::Success),
        ],
    );
}

#[test]
fn field_note_07_a_fan_out_in_a_lane_comes_to_the_same_in_every_order() {
    let plans = plan(4)
        .fan_out("each", 4, &[], Some("lane"), None)
        .items_with("each", |node| node.on_failure = OnFailure::Continue)
        .lane("lane", 4, 4)
        .job("after", &["each:failed"]);
    every_order(
        &plans,
        &[
            ("each[web-1]", End::Success),
            ("each[web-2]", End::Failure),
            ("each[web-3]", End::Success),
            ("each[web-4]", End::TimedOut),
        ],
    );
}

#[test]
fn field_note_07_a_cancel_comes_to_the_same_whatever_ends_first() {
    let plans = plan(0)
        .job("a", &[])
        .job("b", &[])
        .job("c", &[])
        .job("end", &["a", "b", "c"]);
    let mut begun = World::new(plans.index());
    begun.begin();
    begun.accept(CommandKind::Cancel);
    let ends = [("a", End::Success), ("b", End::Failure), ("c", End::Cancelled)];
    let mut outcomes = Vec::new();
    for order in permutations(3) {
        let mut world = begun.clone();
        for ix in order {
            world.finish(ends[ix].0, &ends[ix].1);
        }
        outcomes.push(outcome(&mut world));
    }
    assert!(outcomes.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(outcomes[0].0, OperationStatus::Cancelled);
}
