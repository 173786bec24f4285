use execution_plane_api::{AttemptState, OutputEnd, OutputEvent, OutputStream};
use futures::{StreamExt, TryStreamExt};
use identity::Role;

use crate::harness::{World, chunks, code, noop};

#[tokio::test]
async fn chunks_are_stored_once_in_order_whatever_is_resent() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop()]).await;
    let lease = runner.one().await;
    let all = chunks(&["a", "bb", "", "ccc", "d"]);
    assert_eq!(runner.output(&lease, all[..2].to_vec()).await.unwrap(), 2);
    assert_eq!(runner.output(&lease, all[..2].to_vec()).await.unwrap(), 2, "a repeat");
    assert_eq!(
        runner.output(&lease, all[1..4].to_vec()).await.unwrap(),
        4,
        "an overlap"
    );
    assert_eq!(runner.output(&lease, Vec::new()).await.unwrap(), 4);
    let gap = chunks(&["a", "bb", "", "ccc", "d", "e"])[5..].to_vec();
    let refused = runner.output(&lease, gap).await.unwrap_err();
    assert_eq!(code(&refused), (409, "output_gap"));
    assert_eq!(refused.problem().unwrap().extensions["expected_sequence"], 5);
    let mut shifted = all[4].clone();
    shifted.byte_offset += 1;
    let refused = runner.output(&lease, vec![shifted]).await.unwrap_err();
    assert_eq!(code(&refused), (409, "output_mismatch"));
    assert_eq!(runner.output(&lease, all[4..].to_vec()).await.unwrap(), 5);
    assert_eq!(world.plane().whole_output(lease.attempt_id).await.unwrap(), "abbcccd");
}

#[tokio::test]
async fn concurrent_resends_of_the_same_chunks_store_them_once() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop()]).await;
    let lease = runner.one().await;
    let all = chunks(&["one\n", "two\n", "three\n"]);
    let sends = (0..8).map(|_| runner.output(&lease, all.clone()));
    for acknowledged in futures::future::join_all(sends).await {
        assert_eq!(acknowledged.unwrap(), 3);
    }
    assert_eq!(
        world.plane().whole_output(lease.attempt_id).await.unwrap(),
        "one\ntwo\nthree\n"
    );
}

#[tokio::test]
async fn field_note_05_the_end_is_refused_until_all_output_is_durable_and_then_all_can_be_read() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop()]).await;
    let lease = runner.one().await;
    let all = chunks(&["one\n", "two\n"]);
    runner.output(&lease, all[..1].to_vec()).await.unwrap();
    let refused = runner.finish(&lease, 2).await.unwrap_err();
    assert_eq!(code(&refused), (409, "output_incomplete"));
    assert_eq!(refused.problem().unwrap().extensions["expected_sequence"], 2);
    let attempt = world.plane().attempt(lease.attempt_id).await.unwrap();
    assert!(!attempt.summary.state.is_terminal());

    let viewer = world.person(Role::Viewer);
    let mut tail = Box::pin(viewer.tail(lease.attempt_id, 0));
    let first = tail.next().await.unwrap().unwrap();
    assert_eq!(first, OutputEvent::Chunk(all[0].clone()), "live, before the end");
    runner.output(&lease, all[1..].to_vec()).await.unwrap();
    runner.finish(&lease, 2).await.unwrap();
    let rest: Vec<OutputEvent> = tail.try_collect().await.unwrap();
    let end = OutputEnd {
        state: AttemptState::Succeeded,
        last_sequence: 2,
        bytes: 8,
    };
    assert_eq!(rest, [OutputEvent::Chunk(all[1].clone()), OutputEvent::End(end)]);
    let late = runner
        .output(&lease, chunks(&["one\n", "two\n", "three\n"]))
        .await
        .unwrap_err();
    assert_eq!(code(&late), (409, "attempt_finished"));
}

#[tokio::test]
async fn a_report_that_knows_less_output_than_is_durable_is_refused() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop()]).await;
    let lease = runner.one().await;
    runner.output(&lease, chunks(&["one\n", "two\n"])).await.unwrap();
    let refused = runner.finish(&lease, 1).await.unwrap_err();
    assert_eq!(code(&refused), (409, "output_mismatch"));
    runner.finish(&lease, 2).await.unwrap();
}

#[tokio::test]
async fn output_reads_the_same_after_it_moved_from_the_database_into_its_bundle() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop()]).await;
    let lease = runner.one().await;
    let mut all = chunks(&["out\n", "err\n", "\u{fffd}\n"]);
    all[1].stream = OutputStream::Stderr;
    all[2].data = bytes::Bytes::from_static(b"\xff\xfe\n");
    runner.output(&lease, all.clone()).await.unwrap();
    runner.finish(&lease, 3).await.unwrap();
    // As the compactor does it.
    let client = world.superuser().hot().get().await.unwrap();
    client
        .execute("UPDATE output_segments SET data = NULL", &[])
        .await
        .unwrap();
    let viewer = world.person(Role::Viewer);
    let tail: Vec<OutputEvent> = viewer.tail(lease.attempt_id, 0).try_collect().await.unwrap();
    let read: Vec<_> = tail
        .into_iter()
        .filter_map(|event| match event {
            OutputEvent::Chunk(chunk) => Some(chunk),
            OutputEvent::End(_) => None,
        })
        .collect();
    assert_eq!(read, all);
    assert_eq!(
        viewer.whole_output(lease.attempt_id).await.unwrap(),
        &b"out\nerr\n\xff\xfe\n"[..]
    );
}
