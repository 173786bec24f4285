use std::time::Duration;

use database::{Scope, ServiceRole};
use kernel::id::OrganizationId;
use outbox::{Feed, FeedError, Sequencer, Signal, append};
use tokio_util::sync::CancellationToken;

use crate::world::{World, drain};

#[tokio::test]
async fn an_organization_reads_its_own_events_and_passes_over_the_others() {
    let world = World::new().await;
    let stranger = OrganizationId::new_v7();
    for version in 1..=5 {
        world.write("ours", version).await;
        let transaction = world.api.begin_hot(stranger).await.unwrap();
        let mut event = world.event("theirs", version);
        event.organization = stranger;
        append(&transaction, &[event]).await.unwrap();
        transaction.commit().await.unwrap();
    }
    drain(&mut world.leader().await).await;
    let feed = Feed::new(world.api.clone(), Signal::default());

    let first = feed.read(0, 2, world.organization).await.unwrap();
    assert_eq!((first.events.len(), first.next_after, first.head), (2, 3, 10));
    let rest = feed.read(first.next_after, 100, world.organization).await.unwrap();
    assert_eq!(rest.events.len(), 3);
    assert!(rest.events.iter().all(|event| event.key == "ours"));
    assert_eq!(rest.next_after, 10, "what is another's need not be read again");
    let none = feed.read(0, 100, OrganizationId::new_v7()).await.unwrap();
    assert!(none.events.is_empty());
}

#[tokio::test]
async fn an_event_cannot_be_written_for_another_organization() {
    let world = World::new().await;
    let transaction = world.api.begin_hot(OrganizationId::new_v7()).await.unwrap();
    let error = append(&transaction, &[world.event("a", 1)]).await.unwrap_err();
    assert_eq!(error.sql_state(), Some(database::SqlState::InsufficientPrivilege));
}

#[tokio::test]
async fn a_payload_is_given_byte_for_byte_as_it_was_written() {
    let world = World::new().await;
    let transaction = world.api.begin_hot(world.organization).await.unwrap();
    let mut event = world.event("a", 1);
    event.payload = r#"{ "b":1.0,"a":"\u00e9",  "n": 12345678901234567890 }"#.to_owned();
    append(&transaction, core::slice::from_ref(&event)).await.unwrap();
    transaction.commit().await.unwrap();
    drain(&mut world.leader().await).await;
    let mut reader = world.reader();
    reader.catch_up().await;
    assert_eq!(reader.seen[0].payload.get(), event.payload);
    assert_eq!(reader.seen[0].event_id, event.event_id);
}

#[tokio::test]
async fn a_reader_that_waits_is_woken_by_the_next_event_and_by_nothing_else() {
    let world = World::new().await;
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(Sequencer::new(world.worker.clone(), world.signal.clone()).run(shutdown.clone()));
    let feed = Feed::new(world.api.clone(), world.signal.clone());
    let organization = world.organization;
    let waiting = tokio::spawn(async move { feed.read_or_wait(0, 10, organization, Duration::from_secs(60)).await });

    // Another organization's event moves the head, but is no answer.
    let stranger = OrganizationId::new_v7();
    let transaction = world.api.begin_hot(stranger).await.unwrap();
    let mut event = world.event("theirs", 1);
    event.organization = stranger;
    append(&transaction, &[event]).await.unwrap();
    transaction.commit().await.unwrap();
    world.signal.wake();
    world.write("ours", 1).await;
    world.signal.wake();

    let page = waiting.await.unwrap().unwrap();
    assert_eq!(page.events.len(), 1);
    assert_eq!(page.events[0].key, "ours");
    shutdown.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn a_wait_ends_empty_when_its_time_is_over() {
    let world = World::new().await;
    let feed = Feed::new(world.api.clone(), world.signal.clone());
    let page = feed
        .read_or_wait(0, 10, world.organization, Duration::from_millis(20))
        .await
        .unwrap();
    assert!(page.events.is_empty());
    assert_eq!((page.next_after, page.head), (0, 0));
}

#[tokio::test]
async fn a_cursor_beyond_the_head_is_of_another_database_and_is_told_so() {
    let world = World::new().await;
    let feed = Feed::new(world.test.open(ServiceRole::Worker), Signal::default());
    let error = feed.read(7, 10, Scope::All).await.unwrap_err();
    assert!(matches!(error, FeedError::Ahead { head: 0 }));
}
