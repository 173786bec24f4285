use execution_plane_api::FeedQuery;

use crate::harness::{World, noop};

#[tokio::test]
async fn facts_of_an_attempt_come_in_order_and_none_is_missing() {
    let world = World::start().await;
    let spec = noop();
    world.submit(std::slice::from_ref(&spec)).await;
    let runner = world.runner("r1").await;
    let lease = runner.one().await;
    runner.running(&lease).await.unwrap();
    runner.finish(&lease, 0).await.unwrap();
    let mut kinds = Vec::new();
    let mut versions = Vec::new();
    let mut after = 0;
    while kinds.len() < 4 {
        let query = FeedQuery {
            after: Some(after),
            limit: Some(2),
            wait_seconds: Some(30),
        };
        let page = world.plane().feed(&query).await.unwrap();
        assert!(page.events.iter().all(|event| event.key == spec.attempt_id.to_string()));
        kinds.extend(page.events.iter().map(|event| event.kind.clone()));
        versions.extend(page.events.iter().map(|event| event.version));
        after = page.next_after;
    }
    assert_eq!(
        kinds,
        [
            "attempt.accepted",
            "attempt.leased",
            "attempt.running",
            "attempt.finished"
        ]
    );
    assert_eq!(versions, [1, 2, 3, 4]);
    let attempt = world.plane().attempt(spec.attempt_id).await.unwrap();
    assert_eq!(attempt.summary.version, 4);
}
