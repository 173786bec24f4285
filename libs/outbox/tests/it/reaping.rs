use std::time::Duration;

use database::Scope;
use outbox::{FeedError, acknowledge, forget, forget_silent, reap};

use crate::world::{World, drain};

/// Partitions of two rows each, so that five events fill two of them.
async fn with_events(count: i64) -> World {
    let world = World::new().await;
    world.sql("UPDATE feed_state SET partition_rows = 2").await;
    for version in 1..=count {
        world.write("a", version).await;
    }
    drain(&mut world.leader().await).await;
    world
}

async fn reaped(world: &World) -> u64 {
    reap(&world.worker, Duration::ZERO).await.unwrap()
}

#[tokio::test]
async fn field_note_49_the_reaper_takes_nothing_that_was_not_sent_or_not_acknowledged() {
    let world = with_events(5).await;
    world.write("a", 6).await;
    acknowledge(&world.worker, "fast", 5).await.unwrap();
    acknowledge(&world.worker, "slow", 1).await.unwrap();
    assert_eq!(
        reaped(&world).await,
        0,
        "the slow one needs half of the first partition"
    );

    acknowledge(&world.worker, "slow", 3).await.unwrap();
    assert_eq!(reaped(&world).await, 1, "and half of the second");

    let page = world.reader().feed.read(2, 10, Scope::All).await.unwrap();
    assert_eq!(page.events.len(), 3);
    // What is not yet sequenced is still there, and still comes.
    drain(&mut world.leader().await).await;
    let page = world.reader().feed.read(2, 10, Scope::All).await.unwrap();
    assert_eq!(page.events.last().map(|event| event.version), Some(6));
}

#[tokio::test]
async fn what_is_young_stays_even_when_everyone_has_it_and_what_is_old_goes_with_its_partition() {
    let world = with_events(5).await;
    acknowledge(&world.worker, "one", 5).await.unwrap();
    let day = Duration::from_hours(24);
    assert_eq!(reap(&world.worker, day).await.unwrap(), 0);
    world
        .sql("UPDATE feed_partitions SET filled_at = filled_at - interval '2 days' WHERE first = 1")
        .await;
    assert_eq!(reap(&world.worker, day).await.unwrap(), 1);
    assert_eq!(world.count("SELECT count(*) FROM feed").await, 3);
    assert_eq!(
        world
            .count("SELECT count(*) FROM pg_class WHERE relname = 'feed_1'")
            .await,
        0,
        "the partition itself is gone"
    );
}

#[tokio::test]
async fn the_partition_that_is_being_filled_is_never_taken() {
    let world = with_events(5).await;
    assert_eq!(reaped(&world).await, 2, "nobody is known to need anything");
    assert_eq!(reaped(&world).await, 0);
    world.write("a", 6).await;
    world.write("a", 7).await;
    drain(&mut world.leader().await).await;
    let page = world.reader().feed.read(4, 10, Scope::All).await.unwrap();
    let versions: Vec<i64> = page.events.iter().map(|event| event.version).collect();
    assert_eq!(versions, [5, 6, 7]);
}

#[tokio::test]
async fn a_reader_too_far_behind_is_told_and_never_silently_skipped() {
    let world = with_events(5).await;
    assert_eq!(reaped(&world).await, 2);
    let error = world.reader().feed.read(3, 10, Scope::All).await.unwrap_err();
    assert!(matches!(error, FeedError::TooFarBehind { floor: 4 }));
    let page = world.reader().feed.read(4, 10, Scope::All).await.unwrap();
    assert_eq!(page.events.len(), 1);
}

#[tokio::test]
async fn a_reader_that_is_in_the_way_delays_the_reaper_and_is_not_disturbed() {
    let world = with_events(5).await;
    let reading = world.api.begin_hot(world.organization).await.unwrap();
    let count = "SELECT count(*) FROM feed";
    assert_eq!(reading.query_one(count, &[]).await.unwrap().get::<_, i64>(0), 5);
    assert_eq!(reaped(&world).await, 0);
    assert_eq!(reading.query_one(count, &[]).await.unwrap().get::<_, i64>(0), 5);
    reading.commit().await.unwrap();
    assert_eq!(reaped(&world).await, 2);
}

#[tokio::test]
async fn an_acknowledgement_never_goes_back_and_a_forgotten_consumer_holds_nothing() {
    let world = with_events(4).await;
    acknowledge(&world.api, "one", 4).await.unwrap();
    acknowledge(&world.api, "one", 1).await.unwrap();
    acknowledge(&world.api, "gone", 0).await.unwrap();
    assert_eq!(reaped(&world).await, 0);
    forget(&world.worker, "gone").await.unwrap();
    assert_eq!(reaped(&world).await, 2);
}

#[tokio::test]
async fn a_consumer_that_stays_away_for_as_long_as_rows_are_kept_holds_them_no_longer() {
    let world = with_events(4).await;
    let feed = world.reader().feed;
    feed.reads_on("service:quick", world.organization, 4).await.unwrap();
    feed.reads_on("service:away", world.organization, 1).await.unwrap();
    let away = "UPDATE feed_consumers SET acknowledged_at = now() - interval '8 days' WHERE name LIKE 'service:away %'";
    world.sql(away).await;
    let week = Duration::from_hours(7 * 24);
    assert_eq!(forget_silent(&world.worker, week).await.unwrap(), 1);
    assert_eq!(reaped(&world).await, 2);
}

#[tokio::test]
async fn a_consumer_that_polls_all_the_time_is_put_down_now_and_then() {
    let world = with_events(4).await;
    let feed = world.reader().feed;
    for revision in 1..=3 {
        feed.reads_on("service:quick", world.organization, revision)
            .await
            .unwrap();
    }
    assert_eq!(world.count("SELECT acknowledged FROM feed_consumers").await, 1);
}
