//! The command boundary: claims, then validation while holding, then work.

use control_plane_operation::{CommandKind, EffectKind, Input, NodeReason, NodeState, OperationStatus, RunFailure};

use crate::carrying_on::all_failed;
use crate::plans::{host_id, plan, retrying, uid};
use crate::world::{World, validated};

fn validations(world: &mut World) -> Vec<control_plane_operation::Effect> {
    world.take(|kind| matches!(kind, EffectKind::ValidateBindings { .. }))
}

#[test]
fn claims_come_first_then_validation_then_work() {
    let mut world = World::new(plan(2).job("work", &[]).index());
    assert_eq!(world.status(), OperationStatus::Pending);
    world.tell(&[Input::Started]);
    assert!(
        validations(&mut world).is_empty(),
        "nothing is validated before it is held"
    );
    world.grant();
    assert_eq!(world.status(), OperationStatus::Validating);
    let effects = validations(&mut world);
    assert!(world.specs.is_empty());
    world.tell(&[validated(&effects[0], &[].into())]);
    assert_eq!(world.status(), OperationStatus::Running);
    assert_eq!(world.submitted(), ["work"]);
}

#[test]
fn field_note_28_a_resource_that_moved_since_the_plan_is_told_by_name_and_nothing_starts() {
    let mut world = World::new(plan(2).job("work", &[]).index());
    world.tell(&[Input::Started]);
    world.grant();
    let effects = validations(&mut world);
    world.tell(&[validated(&effects[0], &[2].into())]);
    assert_eq!(world.status(), OperationStatus::Failed);
    let Some(RunFailure::BindingsMoved { moved }) = world.state.operation().progress.failure.clone() else {
        panic!("the failure is told")
    };
    assert_eq!(moved.len(), 1);
    assert_eq!((moved[0].resource_id.clone(), moved[0].gone), (host_id(2), false));
    assert_eq!(moved[0].parts, ["labels"]);
    assert!(world.specs.is_empty());

    world.accept(all_failed());
    world.grant();
    world.validate();
    assert_eq!(
        world.submitted(),
        ["work"],
        "put back as it was, the retry goes through"
    );
}

#[test]
fn a_resource_that_is_gone_is_told_as_gone() {
    let mut world = World::new(plan(1).job("work", &[]).index());
    world.tell(&[Input::Started]);
    world.grant();
    let request = validations(&mut world)[0].id;
    world.tell(&[Input::BindingsValidated {
        request,
        bindings: vec![],
    }]);
    let failure = world.state.operation().progress.failure.clone();
    assert!(matches!(failure, Some(RunFailure::BindingsMoved { moved }) if moved[0].gone));
}

#[test]
fn an_unreachable_catalog_is_asked_again_with_patience_under_a_new_id() {
    let mut world = World::new(plan(1).job("work", &[]).index());
    world.tell(&[Input::Started]);
    world.grant();
    let mut waits = Vec::new();
    for _ in 0..6 {
        let request = validations(&mut world)[0].id;
        world.tell(&[Input::CatalogUnreachable {
            request,
            detail: "refused".into(),
        }]);
        assert_eq!(world.status(), OperationStatus::Validating);
        let wakeup = world.state.next_wakeup().unwrap();
        waits.push((wakeup - world.now).num_seconds());
        world.now = wakeup;
        world.tell(&[Input::Timer]);
        assert_ne!(world.effects[0].id, request);
    }
    assert_eq!(waits, [5, 10, 20, 40, 60, 60]);
    world.validate();
    assert_eq!(world.submitted(), ["work"]);
}

#[test]
fn an_answer_to_another_question_changes_nothing() {
    let mut world = World::new(plan(1).job("work", &[]).index());
    world.tell(&[Input::Started]);
    world.grant();
    let effect = validations(&mut world).remove(0);
    let mut other = effect.clone();
    other.id = control_plane_operation::EffectId(uuid::Uuid::from_u128(7));
    world.tell(&[validated(&other, &[].into())]);
    assert_eq!(world.status(), OperationStatus::Validating);
    world.tell(&[validated(&effect, &[].into())]);
    assert_eq!(world.status(), OperationStatus::Running);
}

#[test]
fn a_job_gets_everything_it_needs() {
    let plans = plan(1).job("work", &[]).job_with(|job| {
        job.targets = vec![uid(1)];
        job.with_content = true;
        job.retry = retrying(2);
    });
    let mut world = World::new(plans.index());
    world.begin();
    let spec = &world.specs[&world.attempt("work")];
    assert_eq!(spec.target.resources[0].resource_id, host_id(1));
    assert_eq!(spec.target.resources[0].connection.as_ref().unwrap()["port"], 22);
    assert_eq!(spec.target.environment, "demo");
    assert_eq!(
        spec.content.as_ref().unwrap().sha256,
        plans.plan.scenario.content_digest.unwrap()
    );
    assert_eq!(spec.scenario.as_ref().unwrap().name, "web/rollout");
    assert_eq!(spec.controls.retry_policy_ref.as_deref(), Some("retry/default"));
    assert_eq!(spec.organization_id, Some(world.state.operation().organization_id));
}

#[test]
fn what_destroys_is_checked_again_just_before() {
    let plans = plan(2)
        .job("first", &[])
        .job("destroy", &["first"])
        .job_with(|job| job.targets = vec![uid(2)])
        .with(|node| node.destructive = true);
    let mut world = World::new(plans.index());
    world.begin();
    world.submitted();
    world.succeed("first");
    assert_eq!(world.submitted(), Vec::<String>::new());
    assert_eq!(world.node_state("destroy"), NodeState::Waiting);
    let mut moved = world.clone();

    let request = world.effects[0].id;
    world.take(|_| true);
    world.tell(&[Input::CatalogUnreachable {
        request,
        detail: "down".into(),
    }]);
    world.now = world.state.next_wakeup().unwrap();
    world.tell(&[Input::Timer]);
    world.validate();
    assert_eq!(world.submitted(), ["destroy"]);

    let effect = validations(&mut moved).remove(0);
    let EffectKind::ValidateBindings { resources } = &effect.kind else {
        panic!()
    };
    assert_eq!(resources.len(), 1, "only its own targets");
    moved.tell(&[validated(&effect, &[2].into())]);
    assert_eq!(moved.node("destroy").reason, Some(NodeReason::BindingsMoved));
    assert_eq!(moved.status(), OperationStatus::Failed);
}

#[test]
fn a_refused_submission_is_a_failure_that_never_ran() {
    let plans = plan(0).job("work", &[]).job_with(|job| job.retry = retrying(2));
    let mut world = World::new(plans.index());
    world.begin();
    let refuse = |world: &World| Input::AttemptRefused {
        attempt_id: world.attempt("work"),
        category: contracts::ExitCategory::PolicyError,
        detail: "no runner can give this".into(),
    };
    world.tell(&[refuse(&world)]);
    assert_eq!(
        world.node_state("work"),
        NodeState::Waiting,
        "nothing ran: the policy may try again"
    );
    world.now = world.state.next_wakeup().unwrap();
    world.tell(&[Input::Timer]);
    world.tell(&[refuse(&world)]);
    assert_eq!(world.node("work").reason, Some(NodeReason::Refused));
    assert_eq!(world.node("work").message.as_deref(), Some("no runner can give this"));
}

#[test]
fn an_attempts_way_is_followed() {
    let mut world = World::new(plan(0).job("work", &[]).index());
    world.begin();
    let attempt_id = world.attempt("work");
    assert_eq!(world.node_state("work"), NodeState::Dispatched);
    world.tell(&[Input::AttemptAccepted { attempt_id }]);
    let started = Input::AttemptStarted {
        attempt_id,
        at: world.now,
        runner: Some("r1".into()),
    };
    world.tell(core::slice::from_ref(&started));
    assert_eq!(world.node_state("work"), NodeState::Running);
    assert_eq!(world.store.attempts[&attempt_id].runner.as_deref(), Some("r1"));
    let events = world.events.len();
    world.tell(&[started, Input::AttemptAccepted { attempt_id }]);
    assert_eq!(world.events.len(), events, "a repeat tells nothing new");
}

#[test]
fn a_clock_that_goes_back_is_not_followed() {
    let mut world = World::new(plan(0).job("work", &[]).index());
    world.pass(100);
    world.begin();
    world.pass(-1_000);
    world.succeed("work");
    let times: Vec<_> = world.events.iter().map(|event| event.at).collect();
    assert!(times.is_sorted());
}

#[test]
fn a_command_is_applied_once_and_a_repeat_gets_the_first_answer() {
    let mut world = World::new(plan(0).job("work", &[]).job("after", &["work"]).index());
    world.begin();
    let pause = Input::Command(Box::new(world.command("oscar", &[], CommandKind::Pause)));
    let first = world.tell(core::slice::from_ref(&pause));
    world.accept(CommandKind::Resume);
    assert_eq!(world.tell(core::slice::from_ref(&pause)), first);
    assert_eq!(world.status(), OperationStatus::Running, "it is not applied again");
    world.crash();
    assert_eq!(world.tell(&[pause]), first);
}

#[test]
fn a_command_made_for_another_revision_is_refused() {
    let mut world = World::new(plan(0).job("work", &[]).index());
    world.begin();
    let mut pause = world.command("oscar", &[], CommandKind::Pause);
    pause.expected_revision = Some(world.state.operation().revision);
    let mut resume = world.command("oscar", &[], CommandKind::Resume);
    resume.expected_revision = Some(world.state.operation().revision);
    let answers = world.tell(&[Input::Command(Box::new(pause)), Input::Command(Box::new(resume))]);
    assert!(format!("{:?}", answers[0].answer).contains("Accepted"));
    assert!(format!("{:?}", answers[1].answer).contains("StaleRevision"));
}

#[test]
fn an_accepted_command_answers_with_the_revision_that_it_made() {
    let mut world = World::new(plan(0).job("work", &[]).index());
    world.begin();
    let answer = world.order(CommandKind::Pause);
    let operation = world.state.operation();
    assert_eq!(
        answer,
        control_plane_operation::CommandAnswer::Accepted {
            status: OperationStatus::Paused,
            run: 1,
            plan_revision: 1,
            revision: operation.revision,
        }
    );
}

#[test]
fn an_operation_without_nodes_succeeds() {
    let mut world = World::new(plan(1).index());
    world.begin();
    assert_eq!(world.status(), OperationStatus::Succeeded);
    let released = world.take(|kind| matches!(kind, EffectKind::ReleaseFinalizers));
    assert_eq!(released.len(), 1);
}
