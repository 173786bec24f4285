use bytes::Bytes;
use client_kit::ClientError;
use contracts::{ArtifactRef, Sensitivity};
use execution_plane_api::{ArtifactListQuery, ArtifactUploadQuery, Lease};
use futures::{StreamExt, TryStreamExt, stream};
use kernel::Sha256Digest;
use kernel::id::AttemptId;
use serde_json::json;

use crate::harness::{TestRunner, World, code, noop, noop_json};

pub async fn upload(
    runner: &TestRunner,
    lease: &Lease,
    name: &str,
    bytes: &'static [u8],
    query: ArtifactUploadQuery,
) -> Result<ArtifactRef, ClientError> {
    let pieces = bytes
        .chunks(3)
        .map(|piece| Ok(Bytes::from_static(piece)))
        .collect::<Vec<_>>();
    runner
        .client
        .upload_artifact(lease.attempt_id, name, &query, stream::iter(pieces).boxed())
        .await
}

pub fn query(lease: &Lease, bytes: &[u8]) -> ArtifactUploadQuery {
    ArtifactUploadQuery {
        epoch: lease.epoch,
        artifact_type: "install_report".into(),
        sensitivity: Sensitivity::Internal,
        sha256: Sha256Digest::of(bytes),
        media_type: Some("text/plain".into()),
    }
}

#[tokio::test]
async fn an_artifact_is_verified_named_and_part_of_the_result() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop()]).await;
    let lease = runner.one().await;
    let stored = upload(&runner, &lease, "report", b"all is well", query(&lease, b"all is well"))
        .await
        .unwrap();
    let again = upload(&runner, &lease, "report", b"all is well", query(&lease, b"all is well"))
        .await
        .unwrap();
    assert_eq!(stored, again, "a repeat answers the same");
    let other = upload(&runner, &lease, "report", b"other", query(&lease, b"other"))
        .await
        .unwrap_err();
    assert_eq!(code(&other), (409, "artifact_conflict"));
    let finished = runner.finish(&lease, 0).await.unwrap();
    assert_eq!(finished.result.artifacts, std::slice::from_ref(&stored));
    assert_eq!((stored.size_bytes, stored.name.as_deref()), (Some(11), Some("report")));
    assert_eq!(
        world.plane().artifact(lease.attempt_id, "report").await.unwrap(),
        "all is well"
    );
    assert_eq!(
        world
            .plane()
            .artifacts(lease.attempt_id, &ArtifactListQuery::default())
            .await
            .unwrap()
            .items,
        [stored]
    );
    let late = upload(&runner, &lease, "late", b"x", query(&lease, b"x"))
        .await
        .unwrap_err();
    assert_eq!(code(&late), (409, "attempt_finished"));
}

#[tokio::test]
async fn wrong_digests_secret_artifacts_and_odd_names_are_refused() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop()]).await;
    let lease = runner.one().await;
    let wrong = upload(&runner, &lease, "report", b"sent", query(&lease, b"named"))
        .await
        .unwrap_err();
    assert_eq!(code(&wrong), (422, "digest_mismatch"));
    let mut secret = query(&lease, b"sent");
    secret.sensitivity = Sensitivity::Secret;
    let refused = upload(&runner, &lease, "report", b"sent", secret).await.unwrap_err();
    assert_eq!(code(&refused), (422, "secret_artifacts_unavailable"));
    for name in ["..", ".hidden", "a/b", "-x", "a b"] {
        let refused = upload(&runner, &lease, name, b"sent", query(&lease, b"sent"))
            .await
            .unwrap_err();
        assert_eq!(code(&refused).0 / 100, 4, "{name}");
    }
    assert!(
        world
            .plane()
            .artifacts(lease.attempt_id, &ArtifactListQuery::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
}

#[tokio::test]
async fn an_artifact_feeds_a_later_attempt_of_its_operation_and_no_other() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    let first = noop_json();
    world.submit_one(first.clone()).await;
    let lease = runner.one().await;
    upload(&runner, &lease, "inventory", b"hosts", query(&lease, b"hosts"))
        .await
        .unwrap();
    runner.finish(&lease, 0).await.unwrap();

    let mut next = first;
    next["attempt_id"] = json!(AttemptId::new_v7());
    next["inputs"]["artifacts"] = json!([{"artifact_ref": "artifact://operation/inventory"}]);
    let mut foreign = next.clone();
    foreign["attempt_id"] = json!(AttemptId::new_v7());
    foreign["operation_id"] = json!(kernel::id::OperationId::new_v7());
    assert_eq!(
        world.submit_one(foreign).await.problem.unwrap().code,
        "artifact_missing"
    );
    world.submit_one(next).await;
    let lease = runner.one().await;
    let input = runner
        .client
        .input_artifact(lease.attempt_id, lease.epoch, "inventory")
        .await
        .unwrap();
    let bytes: Vec<Bytes> = input.try_collect().await.unwrap();
    assert_eq!(bytes.concat(), b"hosts");
    let other = runner
        .client
        .input_artifact(lease.attempt_id, lease.epoch, "other")
        .await;
    assert_eq!(code(&other.err().unwrap()), (404, "not_found"));
}

#[tokio::test]
async fn content_is_stored_by_its_digest_and_fetched_under_a_lease() {
    let world = World::start().await;
    let bundle = Bytes::from_static(b"a bundle");
    let digest = Sha256Digest::of(&bundle);
    let stored = world.plane().put_content(digest, bundle.clone()).await.unwrap();
    assert_eq!(stored.size_bytes, 8);
    world.plane().put_content(digest, bundle.clone()).await.unwrap();
    let wrong = world
        .plane()
        .put_content(Sha256Digest::of(b"other"), bundle.clone())
        .await
        .unwrap_err();
    assert_eq!(code(&wrong), (422, "digest_mismatch"));

    let (runner, other) = (world.runner("r1").await, world.runner("r2").await);
    let mut spec = noop_json();
    spec["content"] = json!({"sha256": digest});
    world.submit_one(spec).await;
    let lease = runner.one().await;
    assert_eq!(lease.content.as_ref().map(|content| content.size_bytes), Some(8));
    let read = runner.client.content(lease.attempt_id, lease.epoch).await.unwrap();
    let pieces: Vec<Bytes> = read.try_collect().await.unwrap();
    assert_eq!(pieces.concat(), bundle);
    let refused = other.client.content(lease.attempt_id, lease.epoch).await;
    assert_eq!(code(&refused.err().unwrap()), (404, "not_found"));
    let stale = runner.client.content(lease.attempt_id, lease.epoch + 1).await;
    assert_eq!(code(&stale.err().unwrap()), (409, "stale_epoch"));
}
