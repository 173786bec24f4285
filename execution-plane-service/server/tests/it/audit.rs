//! Every command leaves a fact, allowed or refused; what is told a thousand times of one attempt only when refused.

use std::collections::BTreeSet;

use ::audit::{AuditFact, AuditQuery};
use api_kit::testing::audited_actions;
use bytes::Bytes;
use execution_plane_api::{ArgvPattern, CancelRequest, CommandPolicyBody};
use execution_plane_server::openapi;
use identity::Role;
use kernel::Sha256Digest;

use crate::artifacts::{query, upload};
use crate::harness::{World, chunks, noop};

async fn facts(world: &World) -> Vec<AuditFact> {
    let admin = world.person(Role::Admin);
    admin.audit_facts(&AuditQuery::default()).await.unwrap().items
}

/// Does everything that can be done, once.
async fn do_everything(world: &World) {
    let (admin, plane) = (world.person(Role::Admin), world.plane());
    let policy = CommandPolicyBody {
        allow: vec![ArgvPattern {
            argv: vec!["true".into()],
        }],
        ..CommandPolicyBody::default()
    };
    admin.put_command_policy("approved", None, &policy).await.unwrap();
    let bundle = Bytes::from_static(b"bundle");
    plane.put_content(Sha256Digest::of(&bundle), bundle).await.unwrap();
    let runner = world.runner("r1").await;
    world.submit(&[noop()]).await;
    let lease = runner.one().await;
    runner.output(&lease, chunks(&["one\n"])).await.unwrap();
    let report = b"all is well";
    upload(&runner, &lease, "report", report, query(&lease, report))
        .await
        .unwrap();
    plane.cancel(lease.attempt_id, CancelRequest::default()).await.unwrap();
    runner.finish(&lease, 1).await.unwrap();
    admin.drain(runner.session.runner_id, 1, true).await.unwrap();
}

#[tokio::test]
async fn every_write_of_the_api_leaves_a_fact_of_what_it_did() {
    let world = World::start().await;
    do_everything(&world).await;
    let facts = facts(&world).await;
    assert!(
        facts.iter().all(|fact| fact.allowed && fact.result == "accepted"),
        "{facts:#?}"
    );
    let told: BTreeSet<String> = facts.iter().map(|fact| fact.action.clone()).collect();
    assert_eq!(told, audited_actions(&openapi().unwrap()));
    assert_eq!(facts.len(), told.len(), "each was done once: {facts:#?}");
    assert!(facts.iter().all(|fact| fact.organization_id == world.organization));
    assert!(facts.iter().all(|fact| fact.remote_address == "127.0.0.1"));
    let of = |action: &str| facts.iter().find(|fact| fact.action == action).unwrap();
    assert!(of("attempt.submit").subject.starts_with("attempts/"));
    assert_eq!(of("attempt.submit").actor, "service:control-plane");
    assert!(of("attempt.finish").actor.starts_with("runner:"));
    assert_eq!(of("runner.open_session").actor, "enrolment:r1");
}

#[tokio::test]
async fn each_attempt_of_a_batch_has_a_fact_of_its_own_also_one_that_was_refused() {
    let world = World::start().await;
    let (good, mut bad) = (noop(), noop());
    bad.organization_id = Some(kernel::id::OrganizationId::new_v7());
    let (good_id, bad_id) = (good.attempt_id, bad.attempt_id);
    world.plane().submit(vec![good.clone(), bad]).await.unwrap();
    world.plane().submit(vec![good]).await.unwrap();
    let told: BTreeSet<(String, bool)> = facts(&world)
        .await
        .into_iter()
        .map(|fact| (fact.subject, fact.allowed))
        .collect();
    let expected = [
        (format!("attempts/{good_id}"), true),
        (format!("attempts/{bad_id}"), false),
    ];
    assert_eq!(told, BTreeSet::from(expected));
    assert_eq!(facts(&world).await.len(), 3, "the repeat leaves a fact, too");
}

#[tokio::test]
async fn a_report_that_comes_too_late_leaves_a_fact_of_its_refusal() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop()]).await;
    let mut lease = runner.one().await;
    lease.epoch += 1;
    runner.output(&lease, chunks(&["late\n"])).await.unwrap_err();
    let facts = facts(&world).await;
    let refused: Vec<_> = facts.iter().filter(|fact| !fact.allowed).collect();
    let [fact] = refused[..] else { panic!("{facts:#?}") };
    assert_eq!(
        (fact.action.as_str(), fact.result.as_str()),
        ("attempt.append_output", "stale_epoch")
    );
}
