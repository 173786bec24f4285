//! Truthful completion: what makes a node, a fan-out and an operation succeed, and what does not.

use contracts::{EvidenceResult, ExitReason, JobStarted, JobType};
use control_plane_operation::{NodeReason, NodeState, OperationStatus, accept_of};
use control_plane_plan::{Accept, OnFailure};

use crate::plans::{need, plan, retrying, uid};
use crate::world::{End, World};

/// Three parents, of which the last ends as told, and a dependent that accepts what is told.
fn third_parent_ends(end: &End, accept: &str) -> World {
    let plans = plan(0)
        .job("a", &[])
        .job("b", &[])
        .job("c", &[])
        .on_failure(OnFailure::Continue)
        .job("join", &["a", "b", &format!("c:{accept}")]);
    let mut world = World::new(plans.index());
    world.begin();
    world.succeed("a");
    world.succeed("b");
    world.finish("c", end);
    world
}

#[test]
fn field_note_01_a_join_does_not_run_when_a_parent_was_lost_or_cancelled_or_failed() {
    for (end, accept) in [
        (End::Failure, Accept::Failed),
        (End::Lost(JobStarted::No), Accept::Lost),
        (End::Cancelled, Accept::Cancelled),
        (End::TimedOut, Accept::TimedOut),
    ] {
        let world = third_parent_ends(&end, "succeeded");
        assert_eq!(world.node_state("join"), NodeState::Skipped, "{end:?}");
        assert_eq!(world.node("join").reason, Some(NodeReason::NeedsNotMet));
        let c = world.node("c");
        assert_eq!(accept_of(c.state, c.reason), Some(accept), "the ends are told apart");
        assert_eq!(world.status(), OperationStatus::Failed);
    }
}

#[test]
fn field_note_01_each_end_is_accepted_by_its_own_word_only() {
    let words = ["failed", "timed_out", "skipped", "cancelled", "lost"];
    for (end, own) in [
        (End::Failure, "failed"),
        (End::Lost(JobStarted::No), "lost"),
        (End::Cancelled, "cancelled"),
        (End::TimedOut, "timed_out"),
    ] {
        for word in words {
            let world = third_parent_ends(&end, word);
            assert_eq!(world.node_state("join").is_live(), word == own, "{end:?} for {word}");
        }
    }
}

#[test]
fn field_note_02_a_job_that_acts_on_hosts_without_a_target_fails_and_never_starts() {
    for job_type in [JobType::Ansible, JobType::Ssh] {
        let plans = plan(1).job("run", &[]).job_with(|job| job.job_type = job_type);
        let mut world = World::new(plans.index());
        world.begin();
        assert_eq!(world.node("run").reason, Some(NodeReason::NoTargets));
        assert!(world.specs.is_empty());
        assert_eq!(world.status(), OperationStatus::Failed);
    }
}

#[test]
fn field_note_02_targets_executed_are_targets_bound() {
    for (executed, expected) in [
        (2, NodeState::Succeeded),
        (0, NodeState::Failed),
        (1, NodeState::Failed),
    ] {
        let plans = plan(2)
            .job("run", &[])
            .job_with(|job| job.targets = vec![uid(1), uid(2)]);
        let mut world = World::new(plans.index());
        world.begin();
        world.finish("run", &End::RanOn(executed));
        assert_eq!(world.node_state("run"), expected, "{executed} of 2");
    }
}

#[test]
fn a_failure_handler_that_succeeds_never_turns_the_operation_green() {
    let plans = plan(0)
        .job("work", &[])
        .on_failure(OnFailure::Continue)
        .job("repair", &["work:failed"])
        .job("after", &["work"]);
    let mut world = World::new(plans.index());
    world.begin();
    world.fail("work");
    assert_eq!(world.node_state("after"), NodeState::Skipped);
    world.succeed("repair");
    assert_eq!(world.status(), OperationStatus::Failed);
    let told = format!("{:?}", world.events.last());
    assert!(
        world
            .events
            .iter()
            .any(|event| format!("{event:?}").contains("failed, handled")),
        "{told}"
    );
}

#[test]
fn field_note_04_a_skipped_fan_out_is_skipped_and_so_is_who_needs_its_success() {
    let plans = plan(2)
        .fan_out("each", 2, &[], None, None)
        .items_with("each", |node| node.skipped = true)
        .job("needs-success", &["each"])
        .job("accepts-skipped", &["each:succeeded|skipped"]);
    let mut world = World::new(plans.index());
    world.begin();
    assert_eq!(world.node_state("each"), NodeState::Skipped);
    assert_eq!(world.node("each").reason, Some(NodeReason::Condition));
    assert_eq!(world.node_state("needs-success"), NodeState::Skipped);
    world.succeed("accepts-skipped");
    assert_eq!(world.status(), OperationStatus::Succeeded);
}

#[test]
fn field_note_04_an_empty_list_hangs_nothing() {
    let plans = plan(0)
        .fan_out("each", 0, &[], None, None)
        .job("after", &["each:succeeded|skipped"]);
    let mut world = World::new(plans.index());
    world.begin();
    assert_eq!(world.node_state("each"), NodeState::Skipped);
    world.succeed("after");
    assert_eq!(world.status(), OperationStatus::Succeeded);
}

#[test]
fn a_skipped_node_still_waits_for_what_it_needs() {
    let plans = plan(0)
        .job("first", &[])
        .job("not-today", &["first"])
        .with(|node| node.skipped = true)
        .job("last", &["not-today:succeeded|skipped"]);
    let mut world = World::new(plans.index());
    world.begin();
    assert_eq!(
        world.node_state("last"),
        NodeState::Pending,
        "an earlier step still runs"
    );
    world.succeed("first");
    assert!(world.node_state("last").is_live());
}

#[test]
fn a_fan_out_with_an_item_that_was_not_run_after_a_failure_is_no_success() {
    let plans = plan(2)
        .fan_out("check", 2, &[], None, None)
        .items_with("check", |node| node.on_failure = OnFailure::Continue)
        .fan_out("work", 2, &[], None, Some("check"))
        .job("after", &["work"]);
    let mut world = World::new(plans.index());
    world.begin();
    world.fail("check[web-1]");
    world.succeed("check[web-2]");
    world.succeed("work[web-2]");
    assert_eq!(world.node("work[web-1]").reason, Some(NodeReason::NeedsNotMet));
    assert_eq!(world.node_state("work"), NodeState::Failed);
    assert_eq!(
        world.node("work").message.as_deref(),
        Some("of 2 items 1 succeeded, 0 failed, 1 not run")
    );
    assert_eq!(world.node_state("after"), NodeState::Skipped);
}

#[test]
fn items_that_were_not_needed_or_were_skipped_by_an_operator_take_nothing_from_a_fan_outs_success() {
    let plans = plan(3)
        .fan_out("check", 3, &[], None, None)
        .fan_out("work", 3, &[], None, Some("check"))
        .items_with("work", |node| node.skipped = node.id == "work[web-3]")
        .job("after", &["work"]);
    let mut world = World::new(plans.index());
    world.begin();
    let skip = control_plane_operation::CommandKind::Skip {
        node: "work[web-1]".into(),
    };
    world.accept(skip);
    for host in 1..=3 {
        world.succeed(&format!("check[web-{host}]"));
    }
    world.succeed("work[web-2]");
    assert_eq!(world.node_state("work"), NodeState::Succeeded);
    assert!(world.node_state("after").is_live());
}

#[test]
fn what_is_skipped_only_because_of_a_harmless_skip_is_harmless_itself() {
    let plans = plan(2)
        .fan_out("check", 2, &[], None, None)
        .items_with("check", |node| node.skipped = node.id == "check[web-1]")
        .fan_out("work", 2, &[], None, Some("check"))
        .job("after", &["work"]);
    let mut world = World::new(plans.index());
    world.begin();
    world.succeed("check[web-2]");
    world.succeed("work[web-2]");
    assert_eq!(world.node("work[web-1]").reason, Some(NodeReason::NeedsNotMet));
    assert_eq!(world.node_state("work"), NodeState::Succeeded);
    world.succeed("after");
    assert_eq!(world.status(), OperationStatus::Succeeded);
}

#[test]
fn of_several_ends_of_items_the_fan_out_tells_the_worst() {
    for (ends, expected) in [
        ([End::Success, End::Success], Some(Accept::Succeeded)),
        ([End::Failure, End::Lost(JobStarted::No)], Some(Accept::Failed)),
        ([End::Lost(JobStarted::No), End::TimedOut], Some(Accept::Lost)),
        ([End::TimedOut, End::Cancelled], Some(Accept::TimedOut)),
        ([End::Cancelled, End::Success], Some(Accept::Cancelled)),
    ] {
        let plans = plan(2)
            .fan_out("each", 2, &[], None, None)
            .items_with("each", |node| node.on_failure = OnFailure::Continue);
        let mut world = World::new(plans.index());
        world.begin();
        world.finish("each[web-1]", &ends[0]);
        world.finish("each[web-2]", &ends[1]);
        let row = world.node("each");
        assert_eq!(accept_of(row.state, row.reason), expected, "{ends:?}");
    }
}

fn contracted() -> crate::plans::Plans {
    plan(2).job("work", &[]).job_with(|job| {
        job.targets = vec![uid(1), uid(2)];
        job.output_contract.evidence = vec!["up".into()];
        job.output_contract.artifacts = vec!["report".into()];
    })
}

#[test]
fn field_note_06_the_evidence_decides_and_not_the_exit_code() {
    for (end, expected) in [
        (End::Success, NodeState::Succeeded),
        (End::FailureProven, NodeState::Succeeded),
        (End::Unproven(EvidenceResult::Failed), NodeState::Failed),
        (End::Unproven(EvidenceResult::Inconclusive), NodeState::Failed),
        (End::Empty, NodeState::Failed),
        (End::Failure, NodeState::Failed),
    ] {
        let mut world = World::new(contracted().index());
        world.begin();
        world.finish("work", &end);
        assert_eq!(world.node_state("work"), expected, "{end:?}");
    }
}

#[test]
fn field_note_06_a_killed_job_is_not_saved_by_earlier_evidence() {
    for reason in [
        ExitReason::Person,
        ExitReason::Policy,
        ExitReason::Limit,
        ExitReason::Timeout,
    ] {
        let mut world = World::new(contracted().index());
        world.begin();
        let mut result = world.result("work", &End::FailureProven);
        result.reason = Some(reason);
        world.tell(&[control_plane_operation::Input::AttemptResult(Box::new(result))]);
        assert_eq!(world.node_state("work"), NodeState::Failed, "{reason:?}");
    }
}

#[test]
fn a_contract_says_what_is_missing() {
    let mut world = World::new(contracted().index());
    world.begin();
    let mut result = world.result("work", &End::Success);
    result
        .evidence
        .retain(|evidence| evidence.resource_id == Some(crate::plans::host_id(1)));
    world.tell(&[control_plane_operation::Input::AttemptResult(Box::new(result))]);
    assert_eq!(world.node("work").reason, Some(NodeReason::ContractUnmet));
    assert_eq!(
        world.node("work").message.as_deref(),
        Some("evidence up is missing for node/web-2")
    );

    let mut world = World::new(contracted().index());
    world.begin();
    let mut result = world.result("work", &End::Success);
    result.artifacts.clear();
    world.tell(&[control_plane_operation::Input::AttemptResult(Box::new(result))]);
    assert_eq!(
        world.node("work").message.as_deref(),
        Some("artifact report is missing")
    );

    let mut world = World::new(contracted().index());
    world.begin();
    let mut result = world.result("work", &End::Success);
    result.evidence[1].result = EvidenceResult::Failed;
    world.tell(&[control_plane_operation::Input::AttemptResult(Box::new(result))]);
    assert_eq!(
        world.node("work").message.as_deref(),
        Some("evidence up failed on node/web-2")
    );
}

#[test]
fn field_note_15_a_node_that_holds_on_failure_waits_for_an_operator() {
    let plans = plan(1)
        .job("work", &[])
        .on_failure(OnFailure::Hold)
        .job("after", &["work"]);
    let mut world = World::new(plans.index());
    world.begin();
    world.fail("work");
    assert_eq!(world.status(), OperationStatus::WaitingIntervention);
    assert_eq!(world.node_state("work"), NodeState::Waiting);
    assert!(world.store.holds_claims(), "a hold keeps its claims");
}

#[test]
fn field_note_37_what_was_killed_is_told_apart_and_only_the_lost_is_retried() {
    for (end, reason, again) in [
        (End::EndedBy(ExitReason::Person), NodeReason::Person, false),
        (End::EndedBy(ExitReason::Policy), NodeReason::Policy, false),
        (End::EndedBy(ExitReason::Limit), NodeReason::Limit, false),
        (End::TimedOut, NodeReason::Timeout, false),
        (End::Cancelled, NodeReason::Person, false),
        (End::Lost(JobStarted::No), NodeReason::LostRunner, true),
    ] {
        let plans = plan(0).job("work", &[]).job_with(|job| {
            job.retry = retrying(3);
            job.idempotent = true;
        });
        let mut world = World::new(plans.index());
        world.begin();
        world.finish("work", &end);
        assert_eq!(world.node_state("work") == NodeState::Waiting, again, "{end:?}");
        if !again {
            assert_eq!(world.node("work").reason, Some(reason));
        }
    }
}

#[test]
fn a_need_reads_as_it_is_written() {
    assert_eq!(need("a:skipped|failed").accept, [Accept::Failed, Accept::Skipped]);
}
