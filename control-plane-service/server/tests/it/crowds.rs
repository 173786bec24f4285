//! Many at once.

use control_plane_api::{Decision, OperationState, PageQuery};

use crate::plans::{Building, plan};
use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_operations_at_once_are_all_carried_through_and_each_job_is_handed_over_once() {
    let world = World::start().await;
    let begun = (0..100).map(|host| world.begin(plan(&[host]).job("check", &[])));
    let ids = futures::future::join_all(begun).await;
    for id in ids {
        world.until_state(id, OperationState::Succeeded).await;
    }
    {
        let facts = world.execution.facts();
        assert_eq!(facts.attempts.len(), 100);
        assert!(facts.submissions.values().all(|count| *count == 1));
        assert!(facts.calls <= 100, "no job takes a call more than its own");
    }
    world.invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_note_19_approvals_meet_failing_siblings_and_none_is_lost() {
    let world = World::start().await;
    world.execution.facts().held.insert("fails".into());
    world.execution.facts().failing.insert("fails".into(), "broken".into());
    let begun = (0..20).map(|host| world.begin(plan(&[host]).gate("go", &[]).job("fails", &[]).job("check", &["go"])));
    let ids = futures::future::join_all(begun).await;
    let mut gates = Vec::new();
    for id in &ids {
        gates.push(world.open_gate(*id).await);
    }
    let bob = world.bob();
    let approve = ids
        .iter()
        .zip(&gates)
        .map(|(id, gate)| world.decide(&bob, *id, gate, Decision::Approve));
    let (decided, ()) = futures::join!(futures::future::join_all(approve), async {
        world.execution.let_go("fails")
    });
    for (id, decided) in ids.into_iter().zip(decided) {
        let operation = world.until_state(id, OperationState::Failed).await;
        let gates = world.bob().gates(id, &PageQuery::default()).await.unwrap().items;
        match decided {
            Ok(_) => assert_eq!(gates[0].decided_by.as_deref(), Some("person:bob"), "{operation:?}"),
            Err(error) => assert!(error.problem().is_some(), "{error:?}"),
        }
    }
    world.invariants().await;
}
