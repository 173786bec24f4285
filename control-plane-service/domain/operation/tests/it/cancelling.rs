//! Cancelling: nothing starts any more, what runs is ended, and "cancelled" is said when that is true.

use contracts::{ExecutionStatus, JobStarted};
use control_plane_operation::{
    CommandKind, EffectKind, Input, NodeReason, NodeState, OperationStatus, RefusalCode, Resolution,
};
use control_plane_plan::OnFailure;

use crate::plans::plan;
use crate::world::{End, World};

fn running() -> World {
    let plans = plan(1).job("work", &[]).job("after", &["work"]);
    let mut world = World::new(plans.index());
    world.begin();
    world
}

fn cancels(world: &mut World) -> Vec<bool> {
    let effects = world.take(|kind| matches!(kind, EffectKind::CancelAttempt { .. }));
    let force =
        |effect: &control_plane_operation::Effect| matches!(effect.kind, EffectKind::CancelAttempt { force: true, .. });
    effects.iter().map(force).collect()
}

#[test]
fn field_note_34_a_cancel_in_the_instant_of_the_start_ends_cancelled_and_nothing_starts() {
    for cancel_first in [true, false] {
        let mut world = World::new(plan(0).job("work", &[]).index());
        let cancel = Input::Command(Box::new(world.command("oscar", &["operator"], CommandKind::Cancel)));
        let inputs = if cancel_first {
            [cancel, Input::Started]
        } else {
            [Input::Started, cancel]
        };
        world.tell(&inputs);
        assert_eq!(world.status(), OperationStatus::Cancelled);
        assert!(world.specs.is_empty());
        world.tell(&[Input::Started, Input::Timer]);
        assert!(world.specs.is_empty());
    }
}

#[test]
fn field_note_34_a_cancel_while_the_resources_are_validated_starts_nothing() {
    let mut world = World::new(plan(1).job("work", &[]).index());
    world.tell(&[Input::Started]);
    world.grant();
    assert_eq!(world.status(), OperationStatus::Validating);
    world.accept(CommandKind::Cancel);
    assert_eq!(world.status(), OperationStatus::Cancelled);
    world.validate();
    assert!(world.specs.is_empty());
}

#[test]
fn field_note_08_a_step_that_finishes_by_itself_after_the_cancel_is_cancelled_and_its_result_is_kept() {
    let mut world = running();
    world.accept(CommandKind::Cancel);
    assert_eq!(world.status(), OperationStatus::Cancelling);
    assert_eq!(cancels(&mut world), [false]);
    let attempt = world.attempt("work");
    world.succeed("work");
    assert_eq!(world.status(), OperationStatus::Cancelled);
    assert_eq!(world.node_state("work"), NodeState::Cancelled);
    let kept = world.store.attempts[&attempt].result.as_ref().unwrap();
    assert_eq!(kept.status, ExecutionStatus::Succeeded, "the real result is kept");
    assert_eq!(world.node("after").reason, Some(NodeReason::OperationCancelled));
}

#[test]
fn field_note_08_the_first_end_that_is_told_stands() {
    let mut world = running();
    let first = world.result("work", &End::Failure);
    let second = world.result("work", &End::Success);
    world.tell(&[Input::AttemptResult(Box::new(first.clone()))]);
    let events = world.events.len();
    world.tell(&[Input::AttemptResult(Box::new(second))]);
    world.tell(&[Input::AttemptResult(Box::new(first))]);
    assert_eq!(world.node_state("work"), NodeState::Failed);
    assert_eq!(world.events.len(), events);
}

#[test]
fn what_does_not_end_within_the_grace_is_cancelled_by_force_once() {
    let mut world = running();
    world.accept(CommandKind::Cancel);
    cancels(&mut world);
    let force_at = world.state.next_wakeup().unwrap();
    assert_eq!((force_at - world.now).num_seconds(), 60);
    world.now = force_at;
    world.tell(&[Input::Timer]);
    assert_eq!(cancels(&mut world), [true]);
    world.tell(&[Input::Timer]);
    assert_eq!(cancels(&mut world), Vec::<bool>::new());
    assert_eq!(world.state.next_wakeup(), None);
}

#[test]
fn cancelled_is_not_said_while_a_lost_job_may_still_run() {
    let mut world = running();
    world.accept(CommandKind::Cancel);
    world.finish("work", &End::Lost(JobStarted::Yes));
    assert_eq!(world.status(), OperationStatus::Unresolved);
    assert!(world.store.holds_claims());
    world.accept(CommandKind::Resolve {
        node: "work".into(),
        resolution: Resolution::Failed,
    });
    assert_eq!(world.status(), OperationStatus::Cancelled);

    let mut world = running();
    world.accept(CommandKind::Cancel);
    world.finish("work", &End::Lost(JobStarted::No));
    assert_eq!(
        world.status(),
        OperationStatus::Cancelled,
        "what never started needs nobody's word"
    );
}

#[test]
fn a_forced_cancel_declares_what_runs_unresolved_and_a_late_result_settles_it() {
    let mut world = running();
    assert_eq!(world.refused(CommandKind::ForceCancel).code, RefusalCode::NotCancelling);
    world.accept(CommandKind::Cancel);
    cancels(&mut world);
    world.accept(CommandKind::ForceCancel);
    assert_eq!(cancels(&mut world), [true]);
    assert_eq!(world.status(), OperationStatus::Unresolved);
    assert_eq!(world.node("work").reason, Some(NodeReason::Declared));
    assert_eq!(
        world.refused(CommandKind::ForceCancel).code,
        RefusalCode::NothingToForce
    );
    world.finish("work", &End::Cancelled);
    assert_eq!(world.status(), OperationStatus::Cancelled);
}

#[test]
fn a_result_after_somebody_settled_its_node_is_kept_as_evidence_and_changes_nothing() {
    let mut world = running();
    let attempt = world.attempt("work");
    let late = world.result("work", &End::Success);
    world.accept(CommandKind::Cancel);
    world.accept(CommandKind::ForceCancel);
    world.accept(CommandKind::Resolve {
        node: "work".into(),
        resolution: Resolution::Failed,
    });
    assert_eq!(world.status(), OperationStatus::Cancelled);
    world.tell(&[Input::AttemptResult(Box::new(late))]);
    assert!(world.store.attempts[&attempt].late);
    assert_eq!(world.node_state("work"), NodeState::Failed);
}

#[test]
fn a_held_or_backing_off_node_keeps_its_failure_through_a_cancel() {
    let plans = plan(1)
        .job("work", &[])
        .on_failure(OnFailure::Hold)
        .gate("approval", &[]);
    let mut world = World::new(plans.index());
    world.begin();
    world.fail("work");
    world.accept(CommandKind::Cancel);
    assert_eq!(world.status(), OperationStatus::Cancelled);
    assert_eq!(world.node("work").reason, Some(NodeReason::JobFailed));
    assert_eq!(world.node_state("approval"), NodeState::Cancelled);
}

#[test]
fn a_pause_lets_running_work_end_and_starts_nothing() {
    let mut world = running();
    world.submitted();
    world.accept(CommandKind::Pause);
    world.succeed("work");
    assert_eq!(world.status(), OperationStatus::Paused);
    assert_eq!(world.node_state("after"), NodeState::Ready);
    assert_eq!(world.submitted(), Vec::<String>::new());
    world.crash();
    world.accept(CommandKind::Resume);
    assert_eq!(world.submitted(), ["after"]);
}

#[test]
fn a_cancel_reaches_an_attempt_whose_submission_was_not_answered() {
    let mut world = running();
    world.accept(CommandKind::Cancel);
    let order: Vec<&str> = world
        .effects
        .iter()
        .map(|effect| match effect.kind {
            EffectKind::SubmitAttempt { .. } => "submit",
            EffectKind::CancelAttempt { .. } => "cancel",
            _ => "other",
        })
        .collect();
    assert_eq!(order, ["submit", "cancel"], "effects on one attempt come in order");
    let attempt_id = world.attempt("work");
    world.tell(&[Input::AttemptRefused {
        attempt_id,
        category: contracts::ExitCategory::PolicyError,
        detail: "cancelled before it came".into(),
    }]);
    assert_eq!(world.status(), OperationStatus::Cancelled);
}

#[test]
fn field_note_35_a_job_that_may_still_run_on_a_target_is_never_a_bare_cancelled() {
    let mut world = running();
    world.accept(CommandKind::Cancel);
    world.finish("work", &End::StillRunning);
    assert_eq!(world.node_state("work"), NodeState::Unresolved);
    assert_eq!(world.status(), OperationStatus::Unresolved);
    assert!(world.store.holds_claims(), "something of it may still run");
    let message = world.node("work").message.clone().unwrap_or_default();
    assert!(message.contains("may still run"), "{message}");
}
