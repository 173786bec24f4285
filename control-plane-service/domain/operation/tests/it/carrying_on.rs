//! Carrying on: attempts by policy, outcomes that are not known, retries in the next run.

use contracts::{EvidenceResult, JobStarted};
use control_plane_operation::{
    CommandKind, Input, NodeReason, NodeState, OperationStatus, RefusalCode, Resolution, RetrySelection,
};
use control_plane_plan::OnFailure;

use crate::plans::{Plans, plan, retrying, uid, update};
use crate::world::{End, World, proof_of};

fn nodes(names: &[&str]) -> CommandKind {
    CommandKind::Retry {
        selection: RetrySelection::Nodes(names.iter().map(|name| (*name).to_owned()).collect()),
        revision: None,
    }
}

pub fn all_failed() -> CommandKind {
    CommandKind::Retry {
        selection: RetrySelection::AllFailed,
        revision: None,
    }
}

/// Nine nodes in a row with a gate at the second place.
fn nine() -> Plans {
    let mut plans = plan(1).job("n1", &[]).gate("n2", &["n1"]);
    for ix in 3..=9 {
        plans = plans.job(&format!("n{ix}"), &[&format!("n{}", ix - 1)]);
    }
    plans
}

#[test]
fn field_note_09_retrying_the_third_of_nine_runs_the_rest_and_the_first_two_never_again() {
    let mut world = World::new(nine().index());
    world.begin();
    world.succeed("n1");
    world.approve("n2");
    world.submitted();
    world.fail("n3");
    assert_eq!(world.status(), OperationStatus::Failed);
    assert_eq!(world.node("n4").reason, Some(NodeReason::NotStarted));

    world.accept(nodes(&["n3"]));
    world.grant();
    world.validate();
    for ix in 3..=9 {
        assert_eq!(world.submitted(), [format!("n{ix}")], "in order");
        world.succeed(&format!("n{ix}"));
    }
    assert_eq!(world.status(), OperationStatus::Succeeded);
    assert_eq!(world.state.operation().run, 2);
    assert_eq!(
        world.store.runs[&1].end,
        Some(control_plane_operation::RunEnd::Failed),
        "a run's end stays"
    );
    assert_eq!(world.state.gates().count(), 1, "the gate was not asked again");
    assert_eq!((world.node("n1").run, world.node("n3").run), (1, 2));
}

/// Pre-check, gate, rollout item by item, verification and update of each host.
pub fn rollout() -> Plans {
    let mut plans = plan(3)
        .fan_out("check", 3, &[], None, None)
        .gate("approval", &["check"])
        .fan_out("deploy", 3, &["approval"], Some("hosts"), None)
        .fan_out("verify", 3, &[], Some("hosts"), Some("deploy"))
        .items_with("verify", |node| {
            if let control_plane_plan::NodeKind::Job(job) = &mut node.action {
                job.output_contract.evidence = vec!["http".into()];
            }
        });
    for host in 1..=3 {
        let id = format!("update[web-{host}]");
        let verify = format!("verify[web-{host}]");
        let action = control_plane_plan::NodeKind::ResourceUpdate(update(host, &["verify"]));
        let mut node = crate::plans::node(&id, &[&verify], action);
        node.item.clone_from(&plans.plan.node(&verify).unwrap().item);
        node.lane = Some("hosts".into());
        plans = plans.add(node);
    }
    plans.lane("hosts", 1, 0)
}

fn broken_at_the_second_host(plans: &Plans) -> World {
    let mut world = World::new(plans.index());
    world.begin();
    for host in 1..=3 {
        world.succeed(&format!("check[web-{host}]"));
    }
    world.approve("approval");
    assert_eq!(world.node_state("deploy[web-2]"), NodeState::Pending, "item by item");
    world.succeed("deploy[web-1]");
    world.succeed("verify[web-1]");
    world.apply_updates();
    world.fail("deploy[web-2]");
    world
}

#[test]
fn a_broken_second_host_reads_one_done_one_failed_one_not_started() {
    let mut world = broken_at_the_second_host(&rollout());
    assert_eq!(world.status(), OperationStatus::Failed);
    assert_eq!(world.node_state("update[web-1]"), NodeState::Succeeded);
    assert_eq!(world.node("deploy[web-2]").reason, Some(NodeReason::JobFailed));
    assert_eq!(
        world.node("deploy[web-2]").message.as_deref(),
        Some("deploy[web-2] ended with 1")
    );
    for node in [
        "verify[web-2]",
        "update[web-2]",
        "deploy[web-3]",
        "verify[web-3]",
        "update[web-3]",
    ] {
        assert_eq!(
            world.node("deploy[web-3]").reason,
            Some(NodeReason::NotStarted),
            "{node}"
        );
    }
    assert_eq!(
        world.store.updates.len(),
        1,
        "the catalog got nothing for the other two"
    );

    world.accept(all_failed());
    world.submitted();
    world.grant();
    world.validate();
    assert_eq!(world.submitted(), ["deploy[web-2]"]);
    world.go_on();
    assert_eq!(world.status(), OperationStatus::Succeeded);
    assert_eq!(world.state.gates().count(), 1, "the gate was not asked again");
    assert_eq!(world.node("deploy[web-1]").run, 1, "the first host was not run again");
    assert_eq!(world.store.updates.len(), 3);
}

#[test]
fn a_changed_parameter_asks_the_gate_again_and_keeps_what_ran_at_its_revision() {
    let plans = rollout();
    let mut world = broken_at_the_second_host(&plans);
    world.accept(CommandKind::Retry {
        selection: RetrySelection::AllFailed,
        revision: Some(plans.parameter("port", 8081).revision(2)),
    });
    world.submitted();
    world.grant();
    world.validate();
    assert_eq!(world.status(), OperationStatus::WaitingGate);
    assert_eq!(
        world.submitted(),
        Vec::<String>::new(),
        "nothing runs before the new approval"
    );
    let oscar_opened_it = world.approval("approval");
    let refusal = world.refused(oscar_opened_it.clone());
    assert_eq!(
        refusal.code,
        RefusalCode::RequesterExcluded,
        "who changed the plan may not approve it"
    );
    let command = world.command("anna", &["approver"], oscar_opened_it);
    world.tell(&[Input::Command(Box::new(command))]);
    assert_eq!(world.submitted(), ["deploy[web-2]"]);
    world.go_on();
    assert_eq!(world.status(), OperationStatus::Succeeded);
    assert_eq!(world.node("deploy[web-1]").plan_revision, 1);
    assert_eq!(world.node("deploy[web-2]").plan_revision, 2);
}

/// A node behind the gate needs only what succeeded at revision 1: it still waits for the new approval.
#[test]
fn what_is_behind_a_voided_gate_waits_for_it_even_if_its_own_needs_are_met() {
    let plans = plan(1)
        .gate("approval", &[])
        .job("deploy", &["approval"])
        .job("verify", &["deploy"]);
    let mut world = World::new(plans.index());
    world.begin();
    world.approve("approval");
    world.succeed("deploy");
    world.fail("verify");
    world.submitted();
    world.accept(CommandKind::Retry {
        selection: RetrySelection::AllFailed,
        revision: Some(plans.parameter("port", 8081).revision(2)),
    });
    world.grant();
    world.validate();
    assert_eq!(world.submitted(), Vec::<String>::new());
    let approval = world.approval("approval");
    let command = world.command("anna", &["approver"], approval);
    world.tell(&[Input::Command(Box::new(command))]);
    assert_eq!(world.submitted(), ["verify"], "deploy stays done");
}

#[test]
fn field_note_10_retrying_a_held_branch_leaves_the_other_branchs_gate_alone() {
    let plans = plan(1)
        .job("left", &[])
        .on_failure(OnFailure::Hold)
        .gate("right", &[])
        .job("end", &["left", "right"]);
    let mut world = World::new(plans.index());
    world.begin();
    world.fail("left");
    let before = world.store.gates.clone();
    world.accept(nodes(&["left"]));
    assert_eq!(world.store.gates, before);
    assert_eq!(world.state.operation().run, 1);
    assert!(world.node_state("left").is_live());
}

#[test]
fn field_note_11_retry_takes_failed_and_skipped_and_not_started_and_never_succeeded() {
    let mut world = broken_at_the_second_host(&rollout());
    let refusal = world.refused(nodes(&["deploy[web-1]"]));
    assert_eq!(refusal.code, RefusalCode::NodeState);
    let refusal = world.refused(nodes(&["verify[web-2]"]));
    assert_eq!(refusal.code, RefusalCode::NeedsNotRetried, "{refusal:?}");
    world.accept(nodes(&["deploy"]));
    let began_anew: Vec<&str> = world
        .state
        .node_runs()
        .filter(|row| row.run == 2)
        .map(|row| row.node.as_str())
        .collect();
    assert!(!began_anew.contains(&"deploy[web-1]"));
    assert!(began_anew.contains(&"deploy[web-2]") && began_anew.contains(&"deploy[web-3]"));
}

#[test]
fn field_note_12_one_item_of_a_fan_out_can_be_retried_alone() {
    let plans = plan(3)
        .fan_out("each", 3, &[], None, None)
        .items_with("each", |node| node.on_failure = OnFailure::Continue);
    let mut world = World::new(plans.index());
    world.begin();
    world.fail("each[web-1]");
    world.fail("each[web-2]");
    world.succeed("each[web-3]");
    world.submitted();
    world.accept(nodes(&["each[web-2]"]));
    world.grant();
    world.validate();
    assert_eq!(world.submitted(), ["each[web-2]"]);
    world.succeed("each[web-2]");
    assert_eq!(
        world.status(),
        OperationStatus::Failed,
        "the first item still reads failed"
    );
    assert_eq!(world.node("each[web-1]").run, 1);
}

#[test]
fn attempts_follow_the_policy_with_a_growing_backoff() {
    let plans = plan(0).job("work", &[]).job_with(|job| {
        job.retry = retrying(4);
        job.idempotent = true;
    });
    let mut world = World::new(plans.index());
    world.begin();
    let mut waits = Vec::new();
    for _ in 0..3 {
        world.fail("work");
        assert_eq!(world.status(), OperationStatus::Running, "it goes on by itself");
        let wakeup = world.state.next_wakeup().unwrap();
        waits.push((wakeup - world.now).num_milliseconds());
        world.tell(&[Input::Timer]);
        assert_eq!(
            world.node_state("work"),
            NodeState::Waiting,
            "a timer before its time does nothing"
        );
        world.now = wakeup;
        world.tell(&[Input::Timer]);
        assert!(world.node_state("work").is_live());
    }
    for (wait, full) in waits.iter().zip([10_000, 20_000, 40_000]) {
        assert!(
            (full / 2..full).contains(wait),
            "{wait} within the upper half of {full}"
        );
    }
    world.fail("work");
    assert_eq!(world.node("work").attempts, 4);
    assert_eq!(world.status(), OperationStatus::Failed);
}

#[test]
fn the_backoff_stays_within_the_policys_bound() {
    let plans = plan(0).job("work", &[]).job_with(|job| {
        job.retry = retrying(8);
        job.idempotent = true;
    });
    let mut world = World::new(plans.index());
    world.begin();
    for _ in 0..7 {
        world.fail("work");
        let wakeup = world.state.next_wakeup().unwrap();
        assert!((wakeup - world.now).num_seconds() <= 60);
        world.now = wakeup;
        world.tell(&[Input::Timer]);
    }
}

#[test]
fn a_category_that_the_policy_does_not_name_is_not_retried() {
    let plans = plan(0).job("work", &[]).job_with(|job| {
        job.retry = retrying(3);
        job.retry.on = vec![contracts::ExitCategory::InfrastructureError];
        job.idempotent = true;
    });
    let mut world = World::new(plans.index());
    world.begin();
    world.fail("work");
    assert_eq!(world.status(), OperationStatus::Failed);
}

#[test]
fn a_job_that_may_have_started_and_is_not_idempotent_is_never_retried_blindly() {
    for (started, idempotent, mutating, expected) in [
        (JobStarted::Yes, false, true, NodeState::Unresolved),
        (JobStarted::Unknown, false, true, NodeState::Unresolved),
        (JobStarted::No, false, true, NodeState::Waiting),
        (JobStarted::Yes, true, true, NodeState::Waiting),
        (JobStarted::Yes, false, false, NodeState::Waiting),
    ] {
        let plans = plan(1).job("work", &[]).job_with(|job| {
            job.retry = retrying(3);
            job.idempotent = idempotent;
            job.mutating = mutating;
        });
        let mut world = World::new(plans.index());
        world.begin();
        world.finish("work", &End::Lost(started));
        assert_eq!(
            world.node_state("work"),
            expected,
            "{started:?} {idempotent} {mutating}"
        );
    }
    let plans = plan(1).job("work", &[]).job_with(|job| job.retry = retrying(3));
    let mut world = World::new(plans.index());
    world.begin();
    world.fail("work");
    assert_eq!(
        world.node_state("work"),
        NodeState::Failed,
        "it ended by itself: known, but not repeated"
    );
}

#[test]
fn an_infrastructure_error_is_an_unknown_outcome_only_where_nobody_saw_whether_the_job_started() {
    use contracts::ExitCategory::{InfrastructureError, Unknown};
    for (category, started, expected) in [
        (InfrastructureError, JobStarted::Unknown, NodeState::Unresolved),
        (InfrastructureError, JobStarted::Yes, NodeState::Failed),
        (InfrastructureError, JobStarted::No, NodeState::Failed),
        (Unknown, JobStarted::Unknown, NodeState::Failed),
    ] {
        let mut world = World::new(plan(1).job("work", &[]).index());
        world.begin();
        let mut result = world.result("work", &End::Failure);
        result.exit_summary.category = category;
        result.job_started = Some(started);
        world.tell(&[Input::AttemptResult(Box::new(result))]);
        assert_eq!(world.node_state("work"), expected, "{category:?} {started:?}");
    }
}

#[test]
fn whether_a_job_started_is_told_by_its_start_when_nothing_else_tells() {
    for (began, expected) in [(true, NodeState::Unresolved), (false, NodeState::Unresolved)] {
        let mut world = World::new(plan(1).job("work", &[]).index());
        world.begin();
        let mut result = world.result("work", &End::Lost(JobStarted::Yes));
        result.job_started = None;
        result.started_at = began.then_some(world.now);
        world.tell(&[Input::AttemptResult(Box::new(result))]);
        assert_eq!(
            world.node_state("work"),
            expected,
            "not known to have stayed out of the world"
        );
    }
}

fn unresolved() -> World {
    let plans = plan(1)
        .job("work", &[])
        .job_with(|job| job.output_contract.evidence = vec!["up".into()])
        .job("after", &["work"]);
    let mut world = World::new(plans.index());
    world.begin();
    world.finish("work", &End::Lost(JobStarted::Yes));
    world
}

fn resolve(resolution: Resolution) -> CommandKind {
    CommandKind::Resolve {
        node: "work".into(),
        resolution,
    }
}

#[test]
fn field_note_29_an_unknown_outcome_blocks_retry_until_it_is_settled() {
    let mut world = unresolved();
    assert_eq!(world.status(), OperationStatus::Unresolved);
    assert!(world.store.holds_claims(), "it keeps its claims");
    assert_eq!(world.refused(all_failed()).code, RefusalCode::NothingToRetry);
    assert_eq!(world.refused(nodes(&["work"])).code, RefusalCode::RunNotEnded);
    world.accept(resolve(Resolution::Failed));
    assert_eq!(world.status(), OperationStatus::Failed);
    assert!(!world.store.holds_claims());
    world.accept(all_failed());
    assert_eq!(world.state.operation().run, 2);
}

#[test]
fn field_note_14_what_was_done_by_hand_needs_a_reason_and_evidence() {
    let mut world = unresolved();
    let refusal = world.refused(resolve(Resolution::Succeeded { evidence: vec![] }));
    assert_eq!(refusal.code, RefusalCode::EvidenceInsufficient);
    let against = vec![proof_of("up", EvidenceResult::Inconclusive, world.now)];
    let refusal = world.refused(resolve(Resolution::Succeeded { evidence: against }));
    assert_eq!(refusal.code, RefusalCode::EvidenceInsufficient);
    let proof = vec![proof_of("up", EvidenceResult::Passed, world.now)];
    let kind = resolve(Resolution::Succeeded { evidence: proof });
    let mut silent = world.command("oscar", &["operator"], kind.clone());
    silent.reason = Some("  ".into());
    let answer = world.tell(&[Input::Command(Box::new(silent))]).remove(0).answer;
    assert!(format!("{answer:?}").contains("ReasonRequired"));
    world.accept(kind);
    assert_eq!(world.node_state("work"), NodeState::Succeeded);
    assert!(world.node_state("after").is_live());
}

#[test]
fn a_missing_artifact_cannot_be_attested() {
    let plans = plan(1)
        .job("work", &[])
        .job_with(|job| job.output_contract.artifacts = vec!["report".into()]);
    let mut world = World::new(plans.index());
    world.begin();
    world.finish("work", &End::Lost(JobStarted::Yes));
    let refusal = world.refused(resolve(Resolution::Succeeded { evidence: vec![] }));
    assert_eq!(refusal.code, RefusalCode::EvidenceInsufficient);
}

#[test]
fn a_refusal_while_an_outcome_is_not_known_says_to_resolve_it_first() {
    let mut world = World::new(plan(1).job("work", &[]).index());
    world.begin();
    world.finish("work", &End::Lost(JobStarted::Yes));
    assert_eq!(world.status(), OperationStatus::Unresolved);
    let skip = CommandKind::Skip { node: "work".into() };
    for kind in [all_failed(), CommandKind::Resume, skip] {
        let refusal = world.refused(kind);
        assert!(refusal.remedy.contains("resolve work"), "{refusal:?}");
    }
}

#[test]
fn a_held_node_can_be_retried_skipped_or_given_up() {
    let plans = plan(1)
        .job("work", &[])
        .on_failure(OnFailure::Hold)
        .job("after", &["work:succeeded|skipped"])
        .job("repair", &["work:failed"]);
    let mut held = World::new(plans.index());
    held.begin();
    held.fail("work");

    let mut world = held.clone();
    world.accept(all_failed());
    world.succeed("work");
    world.go_on();
    assert_eq!(world.status(), OperationStatus::Succeeded);

    let mut world = held.clone();
    world.accept(CommandKind::Skip { node: "work".into() });
    assert_eq!(world.node("work").reason, Some(NodeReason::Operator));
    assert_eq!(world.node_state("repair"), NodeState::Skipped);
    world.go_on();
    assert_eq!(
        world.status(),
        OperationStatus::Succeeded,
        "an operator took responsibility"
    );

    let mut world = held;
    world.accept(resolve(Resolution::Failed));
    assert_eq!(world.node_state("after"), NodeState::Skipped);
    world.go_on();
    assert_eq!(world.status(), OperationStatus::Failed);
}

#[test]
fn retrying_a_node_whose_condition_could_not_be_decided_decides_it_again() {
    let plans = plan(1)
        .job("work", &[])
        .with(|node| node.when = Some("nowhere.at.all".into()))
        .on_failure(OnFailure::Hold);
    let mut world = World::new(plans.index());
    world.begin();
    assert_eq!(world.status(), OperationStatus::WaitingIntervention);
    world.accept(all_failed());
    assert_eq!(
        world.status(),
        OperationStatus::WaitingIntervention,
        "it is as undecidable as before"
    );
    assert!(world.specs.is_empty());
}

#[test]
fn a_retry_with_another_scenarios_plan_or_a_wrong_revision_is_refused() {
    let plans = rollout();
    let mut world = broken_at_the_second_host(&plans);
    let mut other = plans.clone();
    other.plan.scenario.template = "teardown".into();
    for revision in [plans.revision(1), plans.revision(3), other.revision(2)] {
        let refusal = world.refused(CommandKind::Retry {
            selection: RetrySelection::AllFailed,
            revision: Some(revision),
        });
        assert_eq!(refusal.code, RefusalCode::PlanMismatch);
    }
}

#[test]
fn lanes_open_as_many_items_as_they_may_and_stop_after_too_many_failures() {
    let plans = plan(4)
        .fan_out("each", 4, &[], Some("lane"), None)
        .items_with("each", |node| node.on_failure = OnFailure::Continue)
        .lane("lane", 2, 1)
        .job("other", &[]);
    let mut world = World::new(plans.index());
    world.begin();
    assert_eq!(world.submitted(), ["other", "each[web-1]", "each[web-2]"]);
    world.fail("each[web-1]");
    assert_eq!(world.submitted(), ["each[web-3]"], "one failure is tolerated");
    world.fail("each[web-2]");
    assert_eq!(world.submitted(), Vec::<String>::new());
    assert_eq!(world.node("each[web-4]").reason, Some(NodeReason::LaneStopped));
    assert!(world.node_state("each[web-3]").is_live(), "what runs is let to end");
    world.go_on();
    assert_eq!(world.node_state("each"), NodeState::Failed);
    assert_eq!(world.node_state("other"), NodeState::Succeeded);
}

#[test]
fn field_note_30_if_the_first_of_ordered_groups_fails_the_later_ones_do_not_start() {
    let plans = plan(2)
        .fan_out("first", 2, &[], None, None)
        .fan_out("second", 2, &["first"], None, None);
    let mut world = World::new(plans.index());
    world.begin();
    world.submitted();
    world.succeed("first[web-1]");
    world.fail("first[web-2]");
    assert_eq!(world.submitted(), Vec::<String>::new());
    assert_eq!(world.status(), OperationStatus::Failed);
}

#[test]
fn field_note_38_a_fan_out_over_one_target_makes_one_job() {
    let plans = plan(5)
        .fan_out("each", 1, &[], None, None)
        .job_targets("each", &[uid(1)]);
    let mut world = World::new(plans.index());
    world.begin();
    assert_eq!(world.submitted(), ["each[web-1]"]);
}

impl Plans {
    fn job_targets(self, id: &str, targets: &[kernel::id::ResourceUid]) -> Self {
        self.items_with(id, |node| {
            if let control_plane_plan::NodeKind::Job(job) = &mut node.action {
                job.targets = targets.to_vec();
            }
        })
    }
}
