use audit::chain_batch;
use futures::future::join_all;
use kernel::id::OrganizationId;

use crate::world::World;

#[tokio::test]
async fn facts_are_chained_in_the_order_of_their_commits_without_gaps() {
    let world = World::new().await;
    let late = world.writing("late").await;
    world.write(&["first", "second"]).await;
    assert_eq!(chain_batch(&world.worker, 1_000).await.unwrap(), 2);
    late.commit().await.unwrap();
    world.write(&["last"]).await;
    assert_eq!(chain_batch(&world.worker, 1_000).await.unwrap(), 2);
    assert_eq!(world.order().await, ["first", "second", "late", "last"]);
    assert_eq!(world.verify().await.unwrap().sequence, 4);
}

#[tokio::test]
async fn a_fact_of_a_command_that_was_rolled_back_is_nowhere() {
    let world = World::new().await;
    world.writing("undone").await.rollback().await.unwrap();
    world.write(&["done"]).await;
    chain_batch(&world.worker, 1_000).await.unwrap();
    assert_eq!(world.order().await, ["done"]);
}

#[tokio::test]
async fn a_fact_written_again_under_its_id_changes_nothing() {
    let world = World::new().await;
    let fact = world.fact("once");
    for _ in 0..2 {
        let transaction = world.api.begin_hot(world.organization).await.unwrap();
        audit::append(&transaction, core::slice::from_ref(&fact)).await.unwrap();
        transaction.commit().await.unwrap();
    }
    chain_batch(&world.worker, 1_000).await.unwrap();
    assert_eq!(world.order().await, ["once"]);
    world.verify().await.unwrap();
}

#[tokio::test]
async fn many_that_chain_at_once_give_each_fact_one_place() {
    let world = World::new().await;
    let names: Vec<String> = (0..60).map(|number| format!("note/{number}")).collect();
    for name in &names {
        world.write(&[name]).await;
    }
    loop {
        // Small batches, so that they meet.
        let batches = join_all((0..4).map(|_| chain_batch(&world.worker, 7))).await;
        let chained: u64 = batches.into_iter().map(Result::unwrap).sum();
        let head = audit::head(&world.api, world.organization).await.unwrap();
        if chained == 0 && head.waiting == 0 {
            break;
        }
    }
    assert_eq!(world.order().await, names);
    assert_eq!(world.verify().await.unwrap().sequence, 60);
}

#[tokio::test]
async fn each_organization_has_a_chain_of_its_own_and_sees_no_other() {
    let mut world = World::new().await;
    world.write(&["ours"]).await;
    let ours = world.organization;
    world.organization = OrganizationId::new_v7();
    world.write(&["theirs", "theirs too"]).await;
    chain_batch(&world.worker, 1_000).await.unwrap();
    assert_eq!(world.order().await, ["theirs", "theirs too"]);
    assert_eq!(world.verify().await.unwrap().sequence, 2);
    world.organization = ours;
    assert_eq!(world.order().await, ["ours"]);
    assert_eq!(world.verify().await.unwrap().sequence, 1);
}

#[tokio::test]
async fn the_list_has_facts_that_wait_for_their_place_too() {
    let world = World::new().await;
    world.write(&["one", "two"]).await;
    let facts = audit::list(&world.api, world.organization, None, 10).await.unwrap();
    let subjects: Vec<&str> = facts.iter().map(|fact| fact.subject.as_str()).collect();
    assert_eq!(subjects, ["one", "two"]);
    let rest = audit::list(&world.api, world.organization, Some(facts[0].id), 10)
        .await
        .unwrap();
    assert_eq!(rest, facts[1..]);
}
