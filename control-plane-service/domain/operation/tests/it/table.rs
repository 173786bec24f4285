//! Every command in every state has a defined result. The table is the specification: a cell says what
//! the operation's status is once the command was accepted, or `!` and the code it is refused with.

use std::fmt::Write as _;

use contracts::JobStarted;
use control_plane_operation::{CommandAnswer, CommandKind, GateId, Input, OperationStatus, Resolution, RetrySelection};
use control_plane_plan::OnFailure;
use kernel::Sha256Digest;

use crate::plans::plan;
use crate::world::{End, World};

/// A world whose operation is in `status`. Its plan: a gate beside a node `work` that holds on failure,
/// and `after`, which needs both.
fn in_status(status: OperationStatus) -> World {
    let plans = plan(1)
        .gate("approval", &[])
        .job("work", &[])
        .on_failure(OnFailure::Hold)
        .job("after", &["work", "approval"]);
    let mut world = World::new(plans.index());
    match status {
        OperationStatus::Pending => {}
        OperationStatus::WaitingClaim => {
            world.tell(&[Input::Started]);
            let request = world.store.claims.unwrap().0;
            let blockers = vec![control_plane_operation::Blocker {
                uid: crate::plans::uid(1),
                resource_id: crate::plans::host_id(1),
                operation_id: kernel::id::OperationId(uuid::Uuid::from_u128(99)),
                mode: control_plane_plan::ClaimMode::Exclusive,
                since: world.now,
                holds: true,
            }];
            world.tell(&[Input::ClaimsWaiting { request, blockers }]);
        }
        OperationStatus::Validating => {
            world.tell(&[Input::Started]);
            world.grant();
        }
        _ => {
            world.begin();
            beyond_begin(&mut world, status);
        }
    }
    assert_eq!(world.status(), status);
    world
}

fn beyond_begin(world: &mut World, status: OperationStatus) {
    match status {
        OperationStatus::Paused => {
            world.accept(CommandKind::Pause);
        }
        OperationStatus::WaitingGate => world.succeed("work"),
        OperationStatus::WaitingIntervention => world.fail("work"),
        OperationStatus::Unresolved => world.finish("work", &End::Lost(JobStarted::Yes)),
        OperationStatus::Cancelling => {
            world.accept(CommandKind::Cancel);
        }
        OperationStatus::Cancelled => {
            world.accept(CommandKind::Cancel);
            world.finish("work", &End::Cancelled);
        }
        OperationStatus::Succeeded => {
            world.approve("approval");
            world.succeed("work");
            world.succeed("after");
        }
        OperationStatus::Failed => {
            world.approve("approval");
            world.succeed("work");
            world.fail("after");
        }
        _ => {}
    }
}

fn commands(world: &World) -> Vec<(&'static str, CommandKind)> {
    let known = world.state.gates().next();
    let gate = known.map_or(GateId(uuid::Uuid::nil()), |gate| gate.id);
    let digest = known.map_or(Sha256Digest::of(b""), |gate| gate.digest);
    vec![
        ("approve", CommandKind::ApproveGate { gate, digest }),
        ("reject", CommandKind::RejectGate { gate, digest }),
        ("pause", CommandKind::Pause),
        ("resume", CommandKind::Resume),
        (
            "retry",
            CommandKind::Retry {
                selection: RetrySelection::AllFailed,
                revision: None,
            },
        ),
        (
            "retry_work",
            CommandKind::Retry {
                selection: RetrySelection::Nodes(vec!["work".into()]),
                revision: None,
            },
        ),
        (
            "retry_set",
            CommandKind::Retry {
                selection: RetrySelection::AllFailed,
                revision: Some(plan(1).job("after", &[]).revision(2)),
            },
        ),
        ("skip_work", CommandKind::Skip { node: "work".into() }),
        ("skip_after", CommandKind::Skip { node: "after".into() }),
        ("cancel", CommandKind::Cancel),
        ("force", CommandKind::ForceCancel),
        (
            "resolve_done",
            CommandKind::Resolve {
                node: "work".into(),
                resolution: Resolution::Succeeded { evidence: vec![] },
            },
        ),
        (
            "resolve_failed",
            CommandKind::Resolve {
                node: "work".into(),
                resolution: Resolution::Failed,
            },
        ),
    ]
}

fn table() -> String {
    let mut text = String::new();
    for status in OperationStatus::ALL {
        for (name, kind) in commands(&in_status(*status)) {
            let mut world = in_status(*status);
            let cell = match world.order(kind) {
                CommandAnswer::Accepted { status, .. } => status.as_str().to_owned(),
                CommandAnswer::Refused(refusal) => {
                    assert!(!refusal.detail.is_empty() && !refusal.remedy.is_empty(), "{refusal:?}");
                    let code = serde_json::to_value(refusal.code).unwrap();
                    format!("!{}", code.as_str().unwrap())
                }
            };
            writeln!(text, "{:<20} {name:<14} {cell}", status.as_str()).unwrap();
        }
    }
    text
}

#[test]
fn every_command_in_every_state_has_a_defined_result() {
    let expected = include_str!("table.txt");
    let actual = table();
    for (expected, actual) in expected.lines().zip(actual.lines()) {
        assert_eq!(expected, actual);
    }
    assert_eq!(expected.lines().count(), actual.lines().count(), "{actual}");
}
