use execution_plane_api::{ArgvPattern, CommandPolicyBody};
use identity::Role;
use serde_json::json;

use crate::harness::{World, code, noop_json};

fn body(words: &[&str]) -> CommandPolicyBody {
    CommandPolicyBody {
        allow: vec![ArgvPattern {
            argv: words.iter().map(|word| (*word).to_owned()).collect(),
        }],
        ..CommandPolicyBody::default()
    }
}

#[tokio::test]
async fn policies_are_versioned_and_a_lost_update_is_refused() {
    let world = World::start().await;
    let admin = world.person(Role::Admin);
    let first = admin
        .put_command_policy("approved", None, &body(&["true"]))
        .await
        .unwrap();
    assert_eq!(first.version, 1);
    let repeat = admin
        .put_command_policy("approved", None, &body(&["true"]))
        .await
        .unwrap();
    assert_eq!(repeat, first);
    let blind = admin
        .put_command_policy("approved", None, &body(&["false"]))
        .await
        .unwrap_err();
    assert_eq!(code(&blind), (412, "version_mismatch"));
    let second = admin
        .put_command_policy("approved", Some(1), &body(&["false"]))
        .await
        .unwrap();
    assert_eq!(second.version, 2);
    let stale = admin
        .put_command_policy("approved", Some(1), &body(&["id"]))
        .await
        .unwrap_err();
    assert_eq!(code(&stale), (412, "version_mismatch"));
    assert_eq!(
        world.person(Role::Viewer).command_policy("approved").await.unwrap(),
        second
    );
    let refused = admin.put_command_policy("bad", None, &body(&[])).await.unwrap_err();
    assert_eq!(code(&refused), (422, "invalid_command_policy"));
}

#[tokio::test]
async fn a_command_that_its_policy_forbids_is_refused_and_the_lease_carries_the_version_in_force() {
    let world = World::start().await;
    let admin = world.person(Role::Admin);
    admin
        .put_command_policy("approved", None, &body(&["true"]))
        .await
        .unwrap();
    let check = |argv: &str| {
        let mut spec = noop_json();
        spec["controls"]["allowed_commands_ref"] = json!("policy/approved");
        spec["inputs"]["parameters"]["checks"][0] =
            json!({"name": "noop", "capability": "platform.noop", "type": "command_check", "argv": [argv]});
        spec
    };
    let refused = world.submit_one(check("rm")).await.problem.unwrap();
    assert_eq!(refused.code, "command_not_allowed");
    assert_eq!(refused.errors[0].pointer, "/inputs/parameters/checks/0");
    world.submit_one(check("true")).await;
    admin
        .put_command_policy("approved", Some(1), &body(&["false"]))
        .await
        .unwrap();
    let lease = world.runner("r1").await.one().await;
    let policy = lease.command_policy.unwrap();
    assert_eq!((policy.version, policy.body), (1, body(&["true"])));
}
