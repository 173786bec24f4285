//! What a decision costs grows with what it changes, not with what the plan holds. Counted, not timed.

use control_plane_operation::{CommandKind, OperationStatus};

use crate::plans::plan;
use crate::world::World;

/// A chain of `length` jobs, carried out to the end; returns changed rows and events per node.
fn chain(length: usize) -> (f64, f64) {
    let mut plans = plan(0).job("n0", &[]);
    for ix in 1..length {
        plans = plans.job(&format!("n{ix}"), &[&format!("n{}", ix - 1)]);
    }
    let mut world = World::counted(plans.index());
    world.begin();
    let (changes, events) = (world.changes, world.events.len());
    for ix in 0..length {
        world.succeed(&format!("n{ix}"));
    }
    assert_eq!(world.status(), OperationStatus::Succeeded);
    let per_node = |total: usize| total as f64 / length as f64;
    (per_node(world.changes - changes), per_node(world.events.len() - events))
}

#[test]
fn field_note_33_the_cost_of_a_node_is_the_same_in_a_plan_of_a_hundred_and_of_ten_thousand() {
    let (small_changes, small_events) = chain(100);
    let (large_changes, large_events) = chain(10_000);
    assert!(
        (small_changes - large_changes).abs() < 0.2,
        "{small_changes} and {large_changes} rows a node"
    );
    assert!(
        (small_events - large_events).abs() < 0.2,
        "{small_events} and {large_events} events a node"
    );
    assert!(large_changes < 6.0 && large_events < 6.0);
}

#[test]
fn field_note_33_ten_thousand_nodes_fan_out_in_a_lane_and_stop_and_go_on() {
    let hosts = 10_000;
    let plans = plan(0)
        .fan_out("each", hosts, &[], Some("lane"), None)
        .items_with("each", |node| {
            if let control_plane_plan::NodeKind::Job(job) = &mut node.action {
                job.targets.clear();
            }
        })
        .lane("lane", 50, 0);
    let mut world = World::counted(plans.index());
    world.begin();
    assert_eq!(world.submitted().len(), 50);
    for host in 1..=5_000_u32 {
        world.succeed(&format!("each[web-{host}]"));
    }
    world.fail("each[web-5001]");
    for host in 5_002..=5_050_u32 {
        world.succeed(&format!("each[web-{host}]"));
    }
    assert_eq!(world.status(), OperationStatus::Failed);
    world.accept(crate::carrying_on::all_failed());
    world.submitted();
    world.go_on_in_order("each", 5_001, hosts);
    assert_eq!(world.status(), OperationStatus::Succeeded);
    assert_eq!(world.specs.len(), 10_001, "only what failed ran twice");
}

#[test]
fn ten_thousand_waiting_operations_ask_for_no_timer() {
    let mut world = World::new(plan(1).gate("approval", &[]).index());
    world.begin();
    assert_eq!(world.state.next_wakeup(), None);
    world.accept(CommandKind::Pause);
    assert_eq!(world.state.next_wakeup(), None);
}

impl World {
    fn go_on_in_order(&mut self, id: &str, from: u128, to: u128) {
        for host in from..=to {
            let node = format!("{id}[web-{host}]");
            if self.node_state(&node).is_live() {
                self.succeed(&node);
            }
        }
    }
}
