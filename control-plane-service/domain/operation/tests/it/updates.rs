//! Resource updates: proven, sent once, rebased where the neighbour changed something else, held otherwise.

use std::collections::BTreeMap;

use contracts::EvidenceResult;
use control_plane_operation::{
    CommandKind, EffectKind, Input, NodeReason, NodeState, OperationStatus, RefusalCode, Resolution, UpdateOutcome,
    UpdateState,
};
use control_plane_plan::{NodeKind, OnFailure};

use crate::carrying_on::{all_failed, rollout};
use crate::plans::{Plans, node, pin, plan, uid, update};
use crate::world::{End, World, proof_of};

fn updating() -> Plans {
    plan(1)
        .job("verify", &[])
        .job_with(|job| {
            job.targets = vec![uid(1)];
            job.output_contract.evidence = vec!["http".into()];
        })
        .add(node(
            "update",
            &["verify"],
            NodeKind::ResourceUpdate(update(1, &["verify"])),
        ))
        .job("after", &["update"])
}

fn sent() -> World {
    let mut world = World::new(updating().index());
    world.begin();
    world.succeed("verify");
    world
}

fn command(world: &mut World) -> contracts::ResourceUpdateCommand {
    let mut effects = world.take(|kind| matches!(kind, EffectKind::SendResourceUpdate { .. }));
    let EffectKind::SendResourceUpdate { command } = effects.remove(0).kind else {
        panic!()
    };
    *command
}

fn answer(world: &mut World, outcome: UpdateOutcome) {
    let command_id = command(world).command_id;
    world.tell(&[Input::UpdateOutcome { command_id, outcome }]);
}

fn conflict(overlaps: bool, other_incarnation: bool) -> UpdateOutcome {
    UpdateOutcome::Conflict {
        current_version: 9,
        overlaps,
        differing: vec!["/health".into()],
        other_incarnation,
    }
}

#[test]
fn an_update_carries_the_passed_evidence_and_the_version_that_was_pinned() {
    let mut world = sent();
    let command = command(&mut world);
    assert_eq!(command.expected_version, 7);
    assert_eq!(command.evidence.len(), 1);
    assert_eq!(command.uid, Some(uid(1)));
    world.tell(&[Input::UpdateOutcome {
        command_id: command.command_id,
        outcome: UpdateOutcome::Applied {
            version: 8,
            pins: BTreeMap::new(),
        },
    }]);
    assert_eq!(world.node_state("update"), NodeState::Succeeded);
    assert!(world.node_state("after").is_live());
}

#[test]
fn an_item_sends_only_its_own_evidence() {
    let mut world = World::new(rollout().index());
    world.begin();
    for host in 1..=3 {
        world.succeed(&format!("check[web-{host}]"));
    }
    world.approve("approval");
    world.succeed("deploy[web-1]");
    world.succeed("verify[web-1]");
    let commands = world.apply_updates();
    assert_eq!(commands.len(), 1);
    assert_eq!(commands[0].evidence.len(), 1);
    assert_eq!(commands[0].evidence[0].resource_id, Some(crate::plans::host_id(1)));
}

#[test]
fn a_capability_without_passed_evidence_is_never_sent() {
    let plans = plan(1).job("verify", &[]).add(node(
        "update",
        &["verify"],
        NodeKind::ResourceUpdate(update(1, &["verify"])),
    ));
    let mut world = World::new(plans.index());
    world.begin();
    world.succeed("verify");
    assert_eq!(world.node("update").reason, Some(NodeReason::EvidenceMissing));
    assert!(world.store.updates.is_empty());
}

#[test]
fn a_version_that_moved_in_fields_that_are_not_ours_is_rebased_under_a_new_command() {
    let mut world = sent();
    let first = command(&mut world);
    world.tell(&[Input::UpdateOutcome {
        command_id: first.command_id,
        outcome: conflict(false, false),
    }]);
    let second = command(&mut world);
    assert_ne!(second.command_id, first.command_id);
    assert_eq!((second.expected_version, &second.changes), (9, &first.changes));
    assert_eq!(world.store.updates[&first.command_id].state, UpdateState::Rebased);
    let applied = UpdateOutcome::Applied {
        version: 10,
        pins: BTreeMap::new(),
    };
    world.tell(&[
        Input::UpdateOutcome {
            command_id: first.command_id,
            outcome: conflict(false, false),
        },
        Input::UpdateOutcome {
            command_id: second.command_id,
            outcome: applied,
        },
    ]);
    assert_eq!(world.node_state("update"), NodeState::Succeeded);
}

#[test]
fn a_pause_lets_an_update_that_was_sent_come_to_its_end_over_a_rebase_too() {
    let mut world = sent();
    world.accept(CommandKind::Pause);
    answer(&mut world, conflict(false, false));
    let second = command(&mut world);
    assert_eq!(second.expected_version, 9);
    let outcome = UpdateOutcome::Applied {
        version: 10,
        pins: BTreeMap::new(),
    };
    world.tell(&[Input::UpdateOutcome {
        command_id: second.command_id,
        outcome,
    }]);
    assert_eq!(world.node_state("update"), NodeState::Succeeded);
    assert_eq!(world.node_state("after"), NodeState::Ready, "nothing new starts");
    assert_eq!(world.status(), OperationStatus::Paused);
}

#[test]
fn a_rebase_does_not_go_on_for_ever() {
    let mut world = sent();
    for _ in 0..17 {
        answer(&mut world, conflict(false, false));
    }
    assert_eq!(world.status(), OperationStatus::WaitingIntervention);
}

#[test]
fn a_version_that_moved_in_our_fields_holds_the_node_for_a_person() {
    for other_incarnation in [false, true] {
        let mut world = sent();
        answer(&mut world, conflict(true, other_incarnation));
        assert_eq!(world.status(), OperationStatus::WaitingIntervention);
        assert_eq!(world.node("update").reason, Some(NodeReason::UpdateConflict));
        assert!(world.store.holds_claims());
        world.accept(all_failed());
        let expected = if other_incarnation { 7 } else { 9 };
        assert_eq!(
            command(&mut world).expected_version,
            expected,
            "retried knowing what stands in the way"
        );
    }
}

#[test]
fn a_rejected_update_is_a_failure() {
    let mut world = sent();
    answer(
        &mut world,
        UpdateOutcome::Rejected {
            detail: "no such capability".into(),
        },
    );
    assert_eq!(world.node("update").reason, Some(NodeReason::UpdateRejected));
    assert_eq!(world.node("update").message.as_deref(), Some("no such capability"));
    assert_eq!(world.status(), OperationStatus::Failed);
}

#[test]
fn what_the_operation_changed_itself_has_not_moved_in_its_next_run() {
    for pins in [BTreeMap::new(), BTreeMap::from([("web".to_owned(), pin(4_001))])] {
        let mut world = sent();
        let told = !pins.is_empty();
        answer(&mut world, UpdateOutcome::Applied { version: 8, pins });
        world.fail("after");
        world.accept(all_failed());
        world.grant();
        let effects = world.take(|kind| matches!(kind, EffectKind::ValidateBindings { .. }));
        let found = |version: i64| Input::BindingsValidated {
            request: effects[0].id,
            bindings: vec![control_plane_operation::ValidatedBinding {
                slot: "web".into(),
                uid: uid(1),
                found: control_plane_operation::BindingFound::Present {
                    pin: pin(4_001),
                    version,
                    connection: None,
                    differing: vec![],
                },
            }],
        };
        // With the pin known any version will do, without it only the one that we made.
        let mut later = world.clone();
        later.tell(&[found(9)]);
        assert_eq!(later.status() == OperationStatus::Running, told);
        world.tell(&[found(8)]);
        assert_eq!(world.status(), OperationStatus::Running);
    }
}

#[test]
fn an_update_that_lands_after_the_cancel_has_landed() {
    let mut world = sent();
    world.accept(CommandKind::Cancel);
    assert_eq!(world.status(), OperationStatus::Cancelling);
    answer(
        &mut world,
        UpdateOutcome::Applied {
            version: 8,
            pins: BTreeMap::new(),
        },
    );
    assert_eq!(
        world.node_state("update"),
        NodeState::Succeeded,
        "it is true in the catalog"
    );
    assert_eq!(world.status(), OperationStatus::Cancelled);

    for outcome in [conflict(false, false), UpdateOutcome::Rejected { detail: "no".into() }] {
        let mut world = sent();
        world.accept(CommandKind::Cancel);
        answer(&mut world, outcome);
        assert_eq!(world.node_state("update"), NodeState::Cancelled);
        assert!(
            world
                .effects
                .iter()
                .all(|effect| !matches!(effect.kind, EffectKind::SendResourceUpdate { .. }))
        );
    }
}

#[test]
fn an_update_done_by_hand_needs_proof_of_what_it_provides() {
    let mut world = sent();
    answer(&mut world, conflict(true, false));
    let resolve = |evidence| CommandKind::Resolve {
        node: "update".into(),
        resolution: Resolution::Succeeded { evidence },
    };
    assert_eq!(world.refused(resolve(vec![])).code, RefusalCode::EvidenceInsufficient);
    let against = vec![proof_of("seen", EvidenceResult::Failed, world.now)];
    assert_eq!(world.refused(resolve(against)).code, RefusalCode::EvidenceInsufficient);
    let proof = vec![proof_of("seen", EvidenceResult::Passed, world.now)];
    world.accept(resolve(proof));
    assert_eq!(world.node_state("update"), NodeState::Succeeded);
}

#[test]
fn evidence_about_another_resource_proves_nothing_here() {
    let plans = plan(2)
        .fan_out("verify", 2, &[], None, None)
        .items_with("verify", |node| {
            node.on_failure = OnFailure::Continue;
            if let NodeKind::Job(job) = &mut node.action {
                job.output_contract.evidence = vec!["http".into()];
            }
        })
        .add(node(
            "update",
            &["verify:failed"],
            NodeKind::ResourceUpdate(update(1, &["verify"])),
        ));
    let mut world = World::new(plans.index());
    world.begin();
    world.finish("verify[web-1]", &End::Unproven(EvidenceResult::Failed));
    world.succeed("verify[web-2]");
    assert_eq!(world.node("update").reason, Some(NodeReason::EvidenceMissing));
}
