use std::time::Duration;

use database::Scope;
use outbox::{FeedError, acknowledge, forget, reap};

use crate::world::{World, drain};

async fn with_events(count: i64) -> World {
    let world = World::new().await;
    for version in 1..=count {
        world.write("a", version).await;
    }
    drain(&mut world.leader().await).await;
    world
}

#[tokio::test]
async fn field_note_49_the_reaper_takes_nothing_that_was_not_sent_or_not_acknowledged() {
    let world = with_events(5).await;
    world.write("a", 6).await;
    assert_eq!(
        reap(&world.worker, Duration::ZERO).await.unwrap(),
        0,
        "nobody has acknowledged"
    );
    acknowledge(&world.worker, "fast", 5).await.unwrap();
    acknowledge(&world.worker, "slow", 2).await.unwrap();

    assert_eq!(
        reap(&world.worker, Duration::ZERO).await.unwrap(),
        2,
        "the slow one still needs the rest"
    );

    let page = world.reader().feed.read(2, 10, Scope::All).await.unwrap();
    assert_eq!(page.events.len(), 3);
    // What is not yet sequenced is still there, and still comes.
    drain(&mut world.leader().await).await;
    let page = world.reader().feed.read(2, 10, Scope::All).await.unwrap();
    assert_eq!(page.events.last().map(|event| event.version), Some(6));
}

#[tokio::test]
async fn what_is_young_stays_even_when_everyone_has_it() {
    let world = with_events(4).await;
    acknowledge(&world.worker, "one", 4).await.unwrap();
    world
        .sql("UPDATE feed SET sequenced_at = now() - interval '2 days' WHERE revision IN (1, 2, 4)")
        .await;
    assert_eq!(
        reap(&world.worker, Duration::from_secs(86_400)).await.unwrap(),
        2,
        "3 is young, so 4 stays too"
    );
    let page = world.reader().feed.read(2, 10, Scope::All).await.unwrap();
    assert_eq!(page.events.len(), 2);
}

#[tokio::test]
async fn a_reader_too_far_behind_is_told_and_never_silently_skipped() {
    let world = with_events(5).await;
    acknowledge(&world.worker, "one", 3).await.unwrap();
    reap(&world.worker, Duration::ZERO).await.unwrap();
    let error = world.reader().feed.read(2, 10, Scope::All).await.unwrap_err();
    assert!(matches!(error, FeedError::TooFarBehind { floor: 3 }));
    assert_eq!(
        world.reader().feed.read(3, 10, Scope::All).await.unwrap().events.len(),
        2
    );
}

#[tokio::test]
async fn an_acknowledgement_never_goes_back_and_a_forgotten_consumer_holds_nothing() {
    let world = with_events(5).await;
    acknowledge(&world.api, "one", 5).await.unwrap();
    acknowledge(&world.api, "one", 1).await.unwrap();
    acknowledge(&world.api, "gone", 0).await.unwrap();
    assert_eq!(reap(&world.worker, Duration::ZERO).await.unwrap(), 0);
    forget(&world.worker, "gone").await.unwrap();
    assert_eq!(reap(&world.worker, Duration::ZERO).await.unwrap(), 5);
}
