//! Every command leaves a fact, allowed or refused, and facts of before there was a chain are chained with the rest.

use std::collections::BTreeSet;

use ::audit::{AuditFact, Verifier};
use api_kit::testing::audited_actions;
use control_plane_api::{Decision, Intervention, PageQuery};
use database::ServiceRole;
use database::testing::TestDatabase;
use identity::Role;
use kernel::id::OrganizationId;
use sqlx::migrate::Migrator;

use crate::planning::harness::Harness;
use crate::plans::{Building as _, plan};
use crate::world::World;

async fn facts(world: &World) -> Vec<AuditFact> {
    let admin = world.client("person:root", &[Role::Admin]);
    admin.audit_facts(&PageQuery::default()).await.unwrap().items
}

fn told(facts: &[AuditFact]) -> Vec<(&str, &str, bool, &str)> {
    facts
        .iter()
        .map(|fact| {
            (
                fact.actor.as_str(),
                fact.action.as_str(),
                fact.allowed,
                fact.result.as_str(),
            )
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_on_operations_leave_facts_also_those_that_came_too_late() {
    let world = World::start().await;
    let id = world.begin(plan(&[1]).gate("go", &[]).job("check", &["go"])).await;
    let gate = world.open_gate(id).await;
    world.decide(&world.bob(), id, &gate, Decision::Reject).await.unwrap();
    world
        .decide(&world.bob(), id, &gate, Decision::Approve)
        .await
        .unwrap_err();
    let viewer = world.client("person:eve", &[Role::Viewer]);
    world.decide(&viewer, id, &gate, Decision::Approve).await.unwrap_err();
    world.intervene(id, Intervention::Pause).await.unwrap_err();
    let facts = facts(&world).await;
    let told = told(&facts);
    let late = told[2].3;
    assert!(["gate_not_open", "operation_over"].contains(&late), "{told:?}");
    let paused = told[4].3;
    let expected = [
        ("person:ada", "operation.create", true, "accepted"),
        ("person:bob", "gate.decide", true, "accepted"),
        ("person:bob", "gate.decide", false, late),
        ("person:eve", "gate.decide", false, "forbidden"),
        ("person:ada", "operation.intervene", false, paused),
    ];
    assert_eq!(told, expected);
    assert!(facts.iter().all(|fact| fact.remote_address == "127.0.0.1"));
    assert!(facts[..3].iter().all(|fact| fact.subject == format!("operation/{id}")));
}

#[tokio::test]
async fn what_the_planning_side_does_leaves_facts_the_rebuild_of_a_projection_too() {
    let harness = Harness::ready().await;
    harness.client().preview(&harness.request(), None).await.unwrap();
    let rebuild = control_plane_api::RebuildRequest {
        reason: "it looks odd".into(),
    };
    harness.client().rebuild_projection("catalog", &rebuild).await.unwrap();
    let admin = harness.client_of(harness.organization, Role::Admin);
    let facts = admin.audit_facts(&PageQuery::default()).await.unwrap().items;
    let actions: BTreeSet<String> = facts.iter().map(|fact| fact.action.clone()).collect();
    assert_eq!(actions, audited_actions(&harness.document));
    let rebuilt = facts.iter().find(|fact| fact.action == "projection.rebuild").unwrap();
    assert_eq!((rebuilt.reason.as_str(), rebuilt.allowed), ("it looks odd", true));
    assert_eq!(rebuilt.subject, "projections/catalog/rebuild");
}

#[test]
fn all_that_the_service_does_is_named_in_the_audit() {
    let expected = [
        "gate.decide",
        "operation.create",
        "operation.intervene",
        "pack.publish",
        "plan.make",
        "projection.rebuild",
    ];
    let named = audited_actions(&control_plane_server::openapi());
    assert_eq!(named, BTreeSet::from(expected.map(str::to_owned)));
}

#[tokio::test]
async fn facts_of_before_there_was_a_chain_are_chained() {
    let known = control_plane_server::MIGRATOR.iter();
    let before = known
        .filter(|migration| !migration.description.contains("audit"))
        .cloned();
    let before = Migrator::with_migrations(before.collect());
    let database = TestDatabase::create(control_plane_server::DATABASE, &before).await;
    let organization = OrganizationId::new_v7();
    let api = database.open(ServiceRole::Api);
    let old = api.begin_hot(organization).await.unwrap();
    let written = "INSERT INTO audit (id, organization_id, actor, action, subject, allowed, result, reason, detail) \
        SELECT gen_random_uuid(), $1, 'person:ada', 'gate.decide', 'operation/1', true, 'accepted', '', '{}' \
        FROM generate_series(1, 3)";
    old.execute(written, &[&organization.as_uuid()]).await.unwrap();
    old.commit().await.unwrap();
    database::migrate(&database.urls().owner, &control_plane_server::MIGRATOR)
        .await
        .unwrap();
    // One of the version that runs beside, which knows nothing of the new column.
    let beside = api.begin_hot(organization).await.unwrap();
    beside.execute(written, &[&organization.as_uuid()]).await.unwrap();
    beside.commit().await.unwrap();
    let worker = database.open(ServiceRole::Worker);
    assert_eq!(::audit::chain_batch(&worker, 100).await.unwrap(), 6);
    let (mut verifier, head) = (Verifier::default(), ::audit::head(&api, organization).await.unwrap());
    for link in ::audit::chain(&api, organization, 0, 100).await.unwrap().links {
        verifier.follow(&link).unwrap();
    }
    verifier.end_at(&head).unwrap();
    assert_eq!(verifier.after(), 6);
}
