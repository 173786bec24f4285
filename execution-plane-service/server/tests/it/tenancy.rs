use bytes::Bytes;
use database::ServiceRole;
use execution_plane_api::{ArtifactListQuery, AttemptOutcome, CancelRequest, FeedQuery, ResultsPullRequest};
use futures::StreamExt;
use kernel::Sha256Digest;
use kernel::id::OrganizationId;

use crate::harness::{World, code, noop, registration};

const TABLES: [&str; 10] = [
    "runners",
    "attempts",
    "leases",
    "results",
    "output_segments",
    "log_bundles",
    "output_compactions",
    "artifacts",
    "contents",
    "command_policies",
];

#[tokio::test]
async fn invariant_10_another_organization_never_learns_that_an_attempt_exists() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    let spec = noop();
    world.submit(std::slice::from_ref(&spec)).await;
    let lease = runner.one().await;
    runner.finish(&lease, 0).await.unwrap();
    let content = Bytes::from_static(b"ours");
    let digest = Sha256Digest::of(&content);
    world.plane().put_content(digest, content.clone()).await.unwrap();

    let strangers = OrganizationId::new_v7();
    let plane = world.plane_for(strangers);
    let id = spec.attempt_id;
    let refusals = [
        plane.attempt(id).await.err(),
        plane.whole_output(id).await.err(),
        plane.artifacts(id, &ArtifactListQuery::default()).await.err(),
        plane.cancel(id, CancelRequest::default()).await.err(),
        Box::pin(plane.tail(id, 0)).next().await.and_then(Result::err),
    ];
    for refusal in refusals {
        assert_eq!(code(&refusal.unwrap()), (404, "not_found"));
    }
    assert!(plane.attempts(&Default::default()).await.unwrap().items.is_empty());
    assert!(plane.runners(&Default::default()).await.unwrap().items.is_empty());
    assert!(plane.feed(&FeedQuery::default()).await.unwrap().events.is_empty());
    let request = ResultsPullRequest {
        ack: vec![id],
        limit: 10,
        wait_seconds: 0,
        running: None,
    };
    assert!(plane.pull_results(&request).await.unwrap().results.is_empty());
    assert_eq!(world.results(Vec::new()).await.len(), 1, "nor can it acknowledge ours");

    // The same ids and digests are the other's own, as if ours were not there.
    let theirs = plane.submit(vec![spec.clone()]).await.unwrap();
    assert_eq!(theirs.outcomes[0].outcome, AttemptOutcome::Accepted);
    let runner = world.runner_of(strangers, registration("r1")).await;
    assert_eq!(runner.one().await.epoch, 1);
}

#[tokio::test]
async fn row_level_security_hides_what_a_query_might_forget() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop()]).await;
    runner.one().await;
    for role in [ServiceRole::Api, ServiceRole::Worker] {
        let database = world.database.open(role);
        let theirs = database.begin_hot(OrganizationId::new_v7()).await.unwrap();
        for table in TABLES {
            let row = theirs
                .query_one(&format!("SELECT count(*) FROM {table}"), &[])
                .await
                .unwrap();
            let is_open = role == ServiceRole::Worker && matches!(table, "leases" | "output_compactions");
            let seen: i64 = row.get(0);
            assert!(is_open || seen == 0, "{table} as {role:?}: {seen}");
        }
    }
    let api = world.database.open(ServiceRole::Api);
    let ours = api.begin_hot(world.organization).await.unwrap();
    let row = ours.query_one("SELECT count(*) FROM attempts", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 1);
}
