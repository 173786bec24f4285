//! Gates: who may decide, what a decision binds to, and that nothing gets past them.

use control_plane_operation::{
    CommandAnswer, CommandKind, GateState, Input, NodeReason, NodeState, OperationStatus, RefusalCode,
};
use control_plane_plan::{GateClaims, OnFailure};
use kernel::Sha256Digest;

use crate::carrying_on::all_failed;
use crate::plans::{Plans, plan};
use crate::world::{REQUESTER, World};

fn gated() -> Plans {
    plan(1).gate("approval", &[]).job("work", &["approval"])
}

fn waiting(plans: &Plans) -> World {
    let mut world = World::new(plans.index());
    world.begin();
    world
}

fn decide_as(world: &mut World, subject: &str, roles: &[&str], kind: CommandKind) -> Option<RefusalCode> {
    let command = world.command(subject, roles, kind);
    match world.tell(&[Input::Command(Box::new(command))]).remove(0).answer {
        CommandAnswer::Accepted { .. } => None,
        CommandAnswer::Refused(refusal) => Some(refusal.code),
    }
}

#[test]
fn field_note_16_roles_count_and_the_requester_may_not_approve() {
    let mut world = waiting(&gated());
    assert_eq!(world.status(), OperationStatus::WaitingGate);
    let approval = world.approval("approval");
    let code = decide_as(&mut world, REQUESTER, &["approver", "operator"], approval.clone());
    assert_eq!(code, Some(RefusalCode::RequesterExcluded));
    let code = decide_as(&mut world, "oscar", &["operator"], approval.clone());
    assert_eq!(code, Some(RefusalCode::RoleMissing));
    assert_eq!(world.node_state("work"), NodeState::Pending);
    assert_eq!(decide_as(&mut world, "anna", &["approver"], approval), None);
    assert!(world.node_state("work").is_live());
}

#[test]
fn a_requester_may_approve_where_the_template_says_so() {
    let mut world = waiting(
        &plan(1)
            .gate("approval", &[])
            .gate_with(|gate| gate.requester_excluded = false),
    );
    let approval = world.approval("approval");
    assert_eq!(decide_as(&mut world, REQUESTER, &["approver"], approval), None);
}

#[test]
fn a_decision_binds_to_the_digest_of_what_the_gate_covers() {
    let mut world = waiting(&gated());
    let gate = world.open_gate("approval");
    let digest = Sha256Digest::of(b"something else");
    let refusal = world.refused(CommandKind::ApproveGate { gate, digest });
    assert_eq!(refusal.code, RefusalCode::DigestMismatch);
    let recorded = world.store.gates[&gate].digest;
    assert_eq!(Some(recorded), world.state.plan().gate_digest("approval"));
}

#[test]
fn field_note_17_a_late_decision_is_a_conflict_and_leaves_the_audit_alone() {
    let mut world = waiting(&gated());
    let approval = world.approval("approval");
    world.approve("approval");
    let events = world.events.len();
    assert_eq!(world.refused(approval.clone()).code, RefusalCode::GateNotOpen);
    assert_eq!(world.events.len(), events);
    world.succeed("work");
    assert_eq!(
        world.refused(approval).code,
        RefusalCode::GateNotOpen,
        "the operation is over"
    );
}

#[test]
fn a_gate_that_is_not_decided_in_time_is_denied() {
    let mut world = waiting(
        &plan(1)
            .gate("approval", &[])
            .gate_with(|gate| gate.expires_after_seconds = Some(600))
            .job("work", &["approval"]),
    );
    let approval = world.approval("approval");
    assert_eq!(
        world.state.next_wakeup(),
        Some(world.now + chrono::Duration::seconds(600))
    );
    world.pass(599);
    world.tell(&[Input::Timer]);
    assert_eq!(world.status(), OperationStatus::WaitingGate);
    world.pass(1);
    // The decision comes in the very instant of the expiry: it is late.
    assert_eq!(world.refused(approval).code, RefusalCode::GateNotOpen);
    assert_eq!(world.node("approval").reason, Some(NodeReason::Expired));
    assert_eq!(world.store.gates.values().next().unwrap().state, GateState::Expired);
    assert_eq!(world.status(), OperationStatus::Failed);
    assert!(world.specs.is_empty());
}

#[test]
fn field_note_20_a_denied_node_runs_by_no_path() {
    let plans = plan(1)
        .gate("approval", &[])
        .on_failure(OnFailure::Continue)
        .job("work", &["approval"])
        .job("always", &["work:succeeded|failed|skipped|cancelled|timed_out|lost"])
        .job("told", &["approval:failed"]);
    let mut world = waiting(&plans);
    let gate = world.open_gate("approval");
    let digest = world.store.gates[&gate].digest;
    world.accept(CommandKind::RejectGate { gate, digest });
    assert_eq!(world.node("work").reason, Some(NodeReason::GateClosed));
    assert_eq!(
        world.node("always").reason,
        Some(NodeReason::GateClosed),
        "however it accepts skipped parents"
    );
    assert_eq!(
        world.submitted(),
        ["told"],
        "a declared handling of the rejection may run"
    );
    let refusal = world.refused(CommandKind::Skip {
        node: "approval".into(),
    });
    assert_eq!(refusal.code, RefusalCode::NodeState);
    world.succeed("told");
    assert_eq!(world.status(), OperationStatus::Failed);

    world.crash();
    world.accept(all_failed());
    world.grant();
    world.validate();
    assert_eq!(world.submitted(), Vec::<String>::new(), "a retry asks the gate again");
    assert_eq!(world.status(), OperationStatus::WaitingGate);
}

#[test]
fn field_note_20_a_gate_that_was_itself_not_reached_lets_nothing_through() {
    let plans = plan(1)
        .job("check", &[])
        .on_failure(OnFailure::Continue)
        .gate("approval", &["check"])
        .job("work", &["approval:succeeded|skipped"]);
    let mut world = waiting(&plans);
    world.submitted();
    world.fail("check");
    assert_eq!(world.node_state("approval"), NodeState::Skipped);
    assert_eq!(world.node("work").reason, Some(NodeReason::GateClosed));
    assert_eq!(world.submitted(), Vec::<String>::new());
}

#[test]
fn a_gate_that_its_own_condition_rules_out_holds_nothing() {
    let plans = plan(1)
        .gate("approval", &[])
        .with(|node| node.when = Some("false".into()))
        .job("work", &["approval:succeeded|skipped"]);
    let mut world = waiting(&plans);
    assert_eq!(world.node("approval").reason, Some(NodeReason::Condition));
    assert_eq!(world.submitted(), ["work"]);
}

#[test]
fn field_note_19_approving_while_a_sibling_fails_loses_no_approval_and_fails_none() {
    for approval_first in [true, false] {
        for policy in [OnFailure::Fail, OnFailure::Continue, OnFailure::Hold] {
            let plans = plan(1)
                .gate("approval", &[])
                .job("work", &["approval"])
                .job("sibling", &[])
                .on_failure(policy);
            let mut world = waiting(&plans);
            let approval = world.approval("approval");
            let command = Input::Command(Box::new(world.command("anna", &["approver"], approval)));
            let result = Input::AttemptResult(Box::new(world.result("sibling", &crate::world::End::Failure)));
            let inputs = if approval_first {
                [command, result]
            } else {
                [result, command]
            };
            let outcome = world.tell(&inputs).remove(0);
            let accepted = matches!(outcome.answer, CommandAnswer::Accepted { .. });
            let gate = world.store.gates.values().next().unwrap();
            assert_eq!(
                gate.state == GateState::Passed,
                accepted,
                "accepted means passed, refused means closed"
            );
            assert_eq!(accepted, approval_first || policy != OnFailure::Fail);
            if policy != OnFailure::Fail {
                assert!(world.node_state("work").is_live());
            }
        }
    }
}

#[test]
fn field_note_22_a_waiting_operation_holds_its_claims_or_lets_them_go_as_declared() {
    let world = waiting(&gated());
    assert!(world.store.holds_claims());

    let releasing = plan(1)
        .job("check", &[])
        .gate("approval", &["check"])
        .gate_with(|gate| gate.claims = GateClaims::Release)
        .job("work", &["approval"]);
    let mut world = waiting(&releasing);
    world.submitted();
    world.succeed("check");
    assert_eq!(world.status(), OperationStatus::WaitingGate);
    assert_eq!(world.store.claims, None);

    world.approve("approval");
    assert_eq!(
        world.submitted(),
        Vec::<String>::new(),
        "nothing runs before the claims are held again"
    );
    world.grant();
    assert_eq!(
        world.submitted(),
        Vec::<String>::new(),
        "nor before the resources are checked again"
    );
    world.validate();
    assert_eq!(world.submitted(), ["work"]);
}

#[test]
fn claims_are_not_let_go_at_a_gate_while_another_branch_runs() {
    let plans = plan(1)
        .gate("approval", &[])
        .gate_with(|gate| gate.claims = GateClaims::Release)
        .job("beside", &[]);
    let mut world = waiting(&plans);
    assert!(world.store.holds_claims());
    world.succeed("beside");
    assert!(!world.store.holds_claims());
}

#[test]
fn a_resource_that_moved_while_its_claim_was_let_go_voids_the_approval() {
    let plans = plan(1)
        .gate("approval", &[])
        .gate_with(|gate| gate.claims = GateClaims::Release)
        .job("work", &["approval"]);
    let mut world = waiting(&plans);
    world.approve("approval");
    world.grant();
    let effects = world.take(|kind| matches!(kind, control_plane_operation::EffectKind::ValidateBindings { .. }));
    world.tell(&[crate::world::validated(&effects[0], &[1].into())]);
    assert_eq!(world.status(), OperationStatus::Failed);
    assert_eq!(world.store.gates.values().next().unwrap().state, GateState::Void);
    assert_eq!(world.submitted(), Vec::<String>::new());

    world.accept(all_failed());
    world.grant();
    world.validate();
    assert_eq!(world.status(), OperationStatus::WaitingGate, "the gate is asked again");
}
