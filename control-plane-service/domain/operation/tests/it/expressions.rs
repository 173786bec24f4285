//! Deferred conditions and inputs: filled from what came before, never from a sibling that happened to end.

use control_plane_operation::{NodeReason, NodeState, OperationStatus};
use control_plane_plan::{NodeKind, OnFailure};

use crate::plans::{plan, update};
use crate::world::World;

#[test]
fn a_condition_over_earlier_outputs_decides_whether_a_node_runs() {
    for (condition, expected) in [
        ("first.status==\"succeeded\"", NodeState::Dispatched),
        ("first.status==\"failed\"", NodeState::Skipped),
        ("parameters.wanted", NodeState::Dispatched),
        ("first.outputs.from==\"first\"", NodeState::Dispatched),
    ] {
        let plans = plan(0)
            .job("first", &[])
            .job("second", &["first"])
            .with(|node| node.when = Some(condition.into()))
            .parameter("wanted", true);
        let mut world = World::new(plans.index());
        world.begin();
        world.succeed("first");
        assert_eq!(world.node_state("second"), expected, "{condition}");
    }
}

#[test]
fn a_condition_that_cannot_be_decided_fails_its_node() {
    for condition in [
        "nowhere.status",
        "first.outputs.missing",
        "\"text\"",
        "sibling.status==\"succeeded\"",
    ] {
        let plans = plan(0)
            .job("first", &[])
            .job("sibling", &[])
            .job("second", &["first"])
            .with(|node| node.when = Some(condition.into()));
        let mut world = World::new(plans.index());
        world.begin();
        world.succeed("sibling");
        world.succeed("first");
        assert_eq!(world.node("second").reason, Some(NodeReason::Expression), "{condition}");
        assert_eq!(world.status(), OperationStatus::Failed);
    }
}

#[test]
fn deferred_inputs_are_filled_at_dispatch() {
    let plans = plan(2)
        .fan_out("each", 2, &[], None, None)
        .fan_out("then", 2, &[], None, Some("each"))
        .items_with("then", |node| {
            if let NodeKind::Job(job) = &mut node.action {
                job.parameters = serde_json::from_value(serde_json::json!({"own": null, "key": null})).unwrap();
                job.deferred.insert("/own".into(), "each.outputs.from".into());
                job.deferred.insert("/key".into(), "item.key".into());
            }
        })
        .job("last", &["each"])
        .job_with(|job| {
            job.parameters = serde_json::from_value(serde_json::json!({"second": null})).unwrap();
            job.deferred
                .insert("/second".into(), "each.items.web-2.outputs.from".into());
        });
    let mut world = World::new(plans.index());
    world.begin();
    world.succeed("each[web-1]");
    world.succeed("each[web-2]");
    let inputs = |world: &World, node: &str| {
        serde_json::Value::Object(world.specs[&world.attempt(node)].inputs.parameters.clone())
    };
    assert_eq!(
        inputs(&world, "then[web-2]"),
        serde_json::json!({"own": "each[web-2]", "key": "web-2"})
    );
    assert_eq!(inputs(&world, "last"), serde_json::json!({"second": "each[web-2]"}));
}

#[test]
fn an_input_that_has_no_value_or_place_fails_its_node_and_can_be_held() {
    for (pointer, expression) in [("/port", "first.outputs.port"), ("/nowhere", "1")] {
        let plans = plan(0)
            .job("first", &[])
            .job("second", &["first"])
            .on_failure(OnFailure::Hold)
            .job_with(|job| {
                job.parameters = serde_json::from_value(serde_json::json!({"port": null})).unwrap();
                job.deferred.insert(pointer.into(), expression.into());
            });
        let mut world = World::new(plans.index());
        world.begin();
        world.succeed("first");
        assert_eq!(world.node("second").reason, Some(NodeReason::Expression));
        assert_eq!(world.status(), OperationStatus::WaitingIntervention);
    }
}

#[test]
fn an_updates_changes_may_be_deferred() {
    let mut change = update(1, &[]);
    change.changes.provided_capabilities = None;
    change.changes.observed_state_patch = Some(serde_json::json!({"by": null}));
    change
        .deferred
        .insert("/observed_state_patch/by".into(), "first.outputs.from".into());
    let plans = plan(1).job("first", &[]).add(crate::plans::node(
        "update",
        &["first"],
        NodeKind::ResourceUpdate(change.clone()),
    ));
    let mut world = World::new(plans.index());
    world.begin();
    world.succeed("first");
    let commands = world.apply_updates();
    assert_eq!(
        commands[0].changes.observed_state_patch,
        Some(serde_json::json!({"by": "first"}))
    );

    change.changes.health_status = Some(contracts::HealthStatus::Healthy);
    change
        .deferred
        .insert("/health_status".into(), "first.outputs.from".into());
    let plans = plan(1).job("first", &[]).add(crate::plans::node(
        "update",
        &["first"],
        NodeKind::ResourceUpdate(change),
    ));
    let mut world = World::new(plans.index());
    world.begin();
    world.succeed("first");
    assert_eq!(
        world.node("update").reason,
        Some(NodeReason::Expression),
        "no health is called first"
    );
}

#[test]
fn an_expression_sees_evidence_artifacts_exit_and_reason_of_what_came_before() {
    for (condition, expected) in [
        ("first.evidence.up==\"passed\"", NodeState::Dispatched),
        ("first.artifacts.report.type==\"install_report\"", NodeState::Dispatched),
        (
            "first.artifacts.report.uri==\"s3://artifacts/first/report\"",
            NodeState::Dispatched,
        ),
        ("first.exit.code==0", NodeState::Dispatched),
        ("skipped.reason==\"condition\"", NodeState::Dispatched),
        ("first.evidence.up==\"failed\"", NodeState::Skipped),
    ] {
        let plans = plan(0)
            .job("first", &[])
            .job_with(|job| {
                job.output_contract.evidence = vec!["up".into()];
                job.output_contract.artifacts = vec!["report".into()];
            })
            .job("skipped", &[])
            .with(|node| node.skipped = true)
            .job("second", &["first", "skipped:skipped"])
            .with(|node| node.when = Some(condition.into()));
        let mut world = World::new(plans.index());
        world.begin();
        world.succeed("first");
        assert_eq!(world.node_state("second"), expected, "{condition}");
    }
}
