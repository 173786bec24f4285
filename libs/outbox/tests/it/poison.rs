use database::Scope;
use outbox::{Batch, append};

use crate::world::{World, drain};

async fn write_payload(world: &World, key: &str, payload: String) {
    let transaction = world.api.begin_hot(world.organization).await.unwrap();
    let mut event = world.event(key, 1);
    event.payload = payload;
    append(&transaction, &[event]).await.unwrap();
    transaction.commit().await.unwrap();
}

#[tokio::test]
async fn field_note_49_a_poison_row_is_parked_with_its_reason_and_blocks_nothing() {
    let world = World::new().await;
    let mut leader = world.leader().await;
    world.write("a", 1).await;
    write_payload(&world, "poison", "this is no JSON".to_owned()).await;
    write_payload(&world, "huge", format!("\"{}\"", "x".repeat(800_000))).await;
    world.write("a", 2).await;

    let batch = leader.batch(10).await.unwrap();

    assert_eq!(
        batch,
        Batch {
            placed: 2,
            parked: 2,
            head: 2
        }
    );
    let mut reader = world.reader();
    reader.catch_up().await;
    assert_eq!(reader.names(), ["a:1", "a:2"]);
    reader.assert_gapless();
    let rows = world.worker.begin_hot(Scope::All).await.unwrap();
    let parked = rows
        .query("SELECT key, reason FROM outbox_parked ORDER BY id", &[])
        .await
        .unwrap();
    let parked: Vec<(String, String)> = parked.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(parked[0].0, "poison");
    assert!(parked[0].1.contains("json"), "{parked:?}");
    assert!(parked[1].1.contains("feed_payload_size"), "{parked:?}");
}

#[tokio::test]
async fn a_fault_that_strikes_every_row_parks_none() {
    let world = World::new().await;
    let mut leader = world.leader().await;
    world.write("a", 1).await;
    // As when the disk is full: an error of the server, not of the row.
    world
        .sql(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
              $$ BEGIN RAISE EXCEPTION USING ERRCODE = '53100', MESSAGE = 'disk full'; END $$; \
              CREATE TRIGGER refuse BEFORE INSERT ON feed FOR EACH ROW EXECUTE FUNCTION refuse()",
        )
        .await;
    leader.batch(10).await.unwrap_err();
    world.sql("DROP TRIGGER refuse ON feed").await;
    drain(&mut leader).await;
    let mut reader = world.reader();
    reader.catch_up().await;
    assert_eq!(reader.names(), ["a:1"]);
}
