use database::{Scope, ServiceRole};
use outbox::{Leader, LeaderError, Sequencer, Signal};
use tokio_util::sync::CancellationToken;

use crate::world::{World, drain};

#[tokio::test]
async fn there_is_one_leader_at_a_time_and_the_next_begins_where_it_ended() {
    let world = World::new().await;
    let mut first = world.leader().await;
    world.write("a", 1).await;
    drain(&mut first).await;
    let other = world.test.open(ServiceRole::Worker);
    assert!(Leader::elect(&other).await.unwrap().is_none());
    drop(first);
    // The lock ends with the connection, which the server notices in its own time.
    let mut second = loop {
        if let Some(leader) = Leader::elect(&other).await.unwrap() {
            break leader;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(second.head(), 1);
    world.write("a", 2).await;
    drain(&mut second).await;
    let mut reader = world.reader();
    reader.catch_up().await;
    assert_eq!(reader.names(), ["a:1", "a:2"]);
}

#[tokio::test]
async fn field_note_49_a_sequencer_that_was_overtaken_doubles_nothing_and_reorders_nothing() {
    let world = World::new().await;
    let mut paused = world.leader().await;
    world.write("a", 1).await;
    // Another took over while this one was paused: its lock is gone without its knowing.
    world.sql("UPDATE feed_state SET epoch = epoch + 1").await;

    assert!(matches!(paused.batch(10).await, Err(LeaderError::Fenced)));

    let mut reader = world.reader();
    reader.catch_up().await;
    assert!(reader.seen.is_empty(), "nothing was written by the old one");
    drop(paused);
    let mut next = loop {
        if let Some(leader) = Leader::elect(&world.worker).await.unwrap() {
            break leader;
        }
        tokio::task::yield_now().await;
    };
    drain(&mut next).await;
    reader.catch_up().await;
    assert_eq!(reader.names(), ["a:1"]);
}

#[tokio::test]
async fn an_overtaken_sequencer_parks_nothing_either() {
    let world = World::new().await;
    let mut paused = world.leader().await;
    let transaction = world.api.begin_hot(world.organization).await.unwrap();
    let mut poison = world.event("p", 1);
    poison.payload = "no json".to_owned();
    outbox::append(&transaction, &[poison]).await.unwrap();
    transaction.commit().await.unwrap();
    world.sql("UPDATE feed_state SET epoch = epoch + 1").await;
    assert!(matches!(paused.batch(10).await, Err(LeaderError::Fenced)));
    let rows = world.worker.begin_hot(Scope::All).await.unwrap();
    let row = rows.query_one("SELECT count(*) FROM outbox_parked", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 0);
}

#[tokio::test]
async fn a_sequencer_whose_connection_is_killed_again_and_again_loses_and_doubles_nothing() {
    let world = World::new().await;
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(Sequencer::new(world.worker.clone(), world.signal.clone()).run(shutdown.clone()));
    let mut reader = world.reader();
    for version in 1..=3 {
        world.write("a", version).await;
        world.signal.wake();
        reader
            .feed
            .wait(reader.after, std::time::Duration::from_secs(20))
            .await
            .unwrap();
        reader.catch_up().await;
        world.write("b", version).await;
        world
            .sql(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted \
                  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            )
            .await;
    }
    while reader.seen.len() < 6 {
        reader
            .feed
            .wait(reader.after, std::time::Duration::from_secs(20))
            .await
            .unwrap();
        reader.catch_up().await;
    }
    shutdown.cancel();
    running.await.unwrap();
    reader.assert_gapless();
    let mut names = reader.names();
    names.sort();
    assert_eq!(names, ["a:1", "a:2", "a:3", "b:1", "b:2", "b:3"]);
}

#[tokio::test]
async fn the_roles_that_serve_requests_can_neither_write_the_feed_nor_move_its_head() {
    let world = World::new().await;
    for statement in [
        "INSERT INTO feed (revision, organization_id, key, version, kind, event_id, payload, occurred_at) \
         VALUES (1, gen_random_uuid(), 'k', 1, 'k', gen_random_uuid(), '{}', now())",
        "DELETE FROM feed",
        "DELETE FROM outbox",
        "UPDATE feed_state SET head = 99",
    ] {
        let transaction = world.api.begin_hot(world.organization).await.unwrap();
        let error = transaction.batch_execute(statement).await.unwrap_err();
        assert_eq!(
            database::SqlState::of_postgres(&error),
            Some(database::SqlState::InsufficientPrivilege),
            "{statement}"
        );
    }
}

#[tokio::test]
async fn signals_of_another_process_are_not_needed() {
    let world = World::new().await;
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(Sequencer::new(world.worker.clone(), Signal::default()).run(shutdown.clone()));
    world.write("a", 1).await;
    // Neither the writer nor the reader shares a signal with the sequencer.
    let mut reader = world.reader();
    assert!(reader.feed.wait(0, std::time::Duration::from_secs(30)).await.unwrap());
    reader.catch_up().await;
    assert_eq!(reader.names(), ["a:1"]);
    shutdown.cancel();
    running.await.unwrap();
}
