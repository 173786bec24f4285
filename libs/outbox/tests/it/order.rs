use std::collections::BTreeMap;

use database::ServiceRole;
use futures::future::join_all;
use outbox::{Sequencer, Signal, append, append_sqlx};
use tokio_util::sync::CancellationToken;

use crate::world::{World, drain};

#[tokio::test]
async fn field_note_49_a_row_that_committed_late_is_not_skipped_by_a_cursor() {
    let world = World::new().await;
    let mut leader = world.leader().await;
    let mut reader = world.reader();
    // The first writer takes the lower id, the second commits first.
    let late = world.writing("late", 1).await;
    world.write("early", 1).await;
    drain(&mut leader).await;
    reader.catch_up().await;
    assert_eq!(reader.names(), ["early:1"]);

    late.commit().await.unwrap();
    drain(&mut leader).await;
    reader.catch_up().await;

    assert_eq!(reader.names(), ["early:1", "late:1"]);
    reader.assert_gapless();
}

#[tokio::test]
async fn field_note_49_a_long_transaction_delays_its_own_rows_loses_none_and_holds_up_nobody() {
    let world = World::new().await;
    let mut leader = world.leader().await;
    let mut reader = world.reader();
    let long = world.writing("long", 1).await;
    for version in 1..=30 {
        world.write("short", version).await;
        drain(&mut leader).await;
        reader.catch_up().await;
        assert_eq!(
            reader.seen.len(),
            usize::try_from(version).unwrap(),
            "nobody waits for the long one"
        );
    }
    long.commit().await.unwrap();
    drain(&mut leader).await;
    reader.catch_up().await;
    assert_eq!(reader.names().last().map(String::as_str), Some("long:1"));
    reader.assert_gapless();
}

#[tokio::test]
async fn what_was_rolled_back_never_appears_and_leaves_no_gap() {
    let world = World::new().await;
    let mut leader = world.leader().await;
    let mut reader = world.reader();
    world.write("a", 1).await;
    world.writing("b", 1).await.rollback().await.unwrap();
    world.write("a", 2).await;
    drain(&mut leader).await;
    reader.catch_up().await;
    assert_eq!(reader.names(), ["a:1", "a:2"]);
    reader.assert_gapless();
}

#[tokio::test]
async fn events_of_one_transaction_keep_their_order_through_both_libraries() {
    let world = World::new().await;
    let hot = world.api.begin_hot(world.organization).await.unwrap();
    append(&hot, &[world.event("a", 1), world.event("b", 1), world.event("a", 2)])
        .await
        .unwrap();
    hot.commit().await.unwrap();
    let mut slow = world.api.begin(world.organization).await.unwrap();
    append_sqlx(&mut slow, &[world.event("a", 3), world.event("c", 1)])
        .await
        .unwrap();
    slow.commit().await.unwrap();

    drain(&mut world.leader().await).await;
    let mut reader = world.reader();
    reader.catch_up().await;
    assert_eq!(reader.names(), ["a:1", "b:1", "a:2", "a:3", "c:1"]);
}

/// One writer of a counted thing: locks its row, counts on, writes the event, commits.
async fn count_on(world: &World, key: &str) {
    let transaction = world.api.begin_hot(world.organization).await.unwrap();
    let row = transaction
        .query_one(
            "UPDATE things SET version = version + 1 WHERE key = $1 RETURNING version",
            &[&key],
        )
        .await
        .unwrap();
    append(&transaction, &[world.event(key, row.get(0))]).await.unwrap();
    transaction.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn field_note_49_each_things_versions_come_in_order_with_many_writers_and_several_sequencers() {
    let world = World::new().await;
    world
        .sql("CREATE TABLE things (key text PRIMARY KEY, version bigint NOT NULL); GRANT SELECT, UPDATE ON things TO post_api; \
              INSERT INTO things SELECT 'thing-' || n, 0 FROM generate_series(0, 3) n")
        .await;
    let shutdown = CancellationToken::new();
    // As if in processes of their own: pools and signals are not shared.
    let sequencers: Vec<_> = (0..3)
        .map(|_| {
            let sequencer = Sequencer::new(world.test.open(ServiceRole::Worker), Signal::default());
            tokio::spawn(sequencer.run(shutdown.clone()))
        })
        .collect();
    let writers = (0..8).map(|writer| {
        let world = &world;
        async move {
            for turn in 0..25 {
                count_on(world, &format!("thing-{}", (writer + turn) % 4)).await;
            }
        }
    });
    join_all(writers).await;

    let mut reader = world.reader();
    while reader.seen.len() < 200 {
        let after = reader.after;
        reader
            .feed
            .wait(after, std::time::Duration::from_secs(10))
            .await
            .unwrap();
        reader.catch_up().await;
    }
    shutdown.cancel();
    join_all(sequencers).await;
    reader.assert_gapless();
    let mut versions: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for event in &reader.seen {
        versions.entry(&event.key).or_default().push(event.version);
    }
    for (key, versions) in versions {
        assert_eq!(versions, (1..=50).collect::<Vec<_>>(), "{key}");
    }
}
