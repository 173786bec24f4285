use api_kit::testing::Walk;
use bytes::Bytes;
use execution_plane_api::{ArgvPattern, CommandPolicyBody};
use execution_plane_server::openapi;
use identity::Role;
use kernel::Sha256Digest;
use serde_json::json;

use crate::artifacts::{query, upload};
use crate::harness::{TestRunner, World, chunks, noop};

/// What there is to walk on: an attempt that has ended, and one that `runner` has leased.
async fn walk(world: &World, runner: &TestRunner) -> Walk {
    world.submit(&[noop()]).await;
    let lease = runner.one().await;
    runner.output(&lease, chunks(&["one\n"])).await.unwrap();
    let report = b"all is well";
    upload(runner, &lease, "report", report, query(&lease, report))
        .await
        .unwrap();
    runner.finish(&lease, 1).await.unwrap();
    world.submit(&[noop()]).await;
    let leased = runner.one().await;
    let of_lease = format!("/v1/runner/attempts/{}", leased.attempt_id);
    let bundle = Bytes::from_static(b"bundle");
    let digest = Sha256Digest::of(&bundle);
    world.plane().put_content(digest, bundle).await.unwrap();
    let policy = CommandPolicyBody {
        allow: vec![ArgvPattern {
            argv: vec!["true".into()],
        }],
        ..CommandPolicyBody::default()
    };
    world
        .person(Role::Admin)
        .put_command_policy("approved", None, &policy)
        .await
        .unwrap();

    let attempt = format!("/v1/attempts/{}", lease.attempt_id);
    let template = "/v1/attempts/{attempt_id}";
    let of_runner = "/v1/runner/attempts/{attempt_id}";
    let its_own = "a runner reaches what it has leased, by the token of its session: see `tenancy` and `leases`";
    Walk::new(format!("http://{}", world.address), world.minter(), world.organization)
        .as_service("control-plane")
        .object(template, &attempt)
        .object(format!("{template}/cancel"), format!("{attempt}/cancel"))
        .object(format!("{template}/output"), format!("{attempt}/output"))
        .object(format!("{template}/artifacts"), format!("{attempt}/artifacts"))
        .object("/v1/contents/{sha256}", format!("/v1/contents/{digest}"))
        .object("/v1/command-policies/{name}", "/v1/command-policies/approved")
        .object(
            "/v1/runners/{runner_id}/drain",
            format!("/v1/runners/{}/drain", runner.session.runner_id),
        )
        .object(
            format!("{template}/artifacts/{{name}}"),
            format!("{attempt}/artifacts/report"),
        )
        .body(format!("POST {template}/cancel"), json!({}))
        .body("PUT /v1/runners/{runner_id}/drain", json!({"draining": true}))
        .body(
            "PUT /v1/command-policies/{name}",
            serde_json::to_value(&policy).unwrap(),
        )
        .without_object(format!("{of_runner}/artifacts/{{name}}"), its_own)
        .without_object(format!("{of_runner}/content"), its_own)
        .without_object(format!("{of_runner}/finish"), its_own)
        .without_object(format!("{of_runner}/inputs/{{name}}"), its_own)
        .without_object(format!("{of_runner}/output"), its_own)
        .without_object(format!("{of_runner}/started"), its_own)
        .runner(runner.session.token.clone())
        .leased(
            format!("{of_runner}/artifacts/{{name}}"),
            format!("{of_lease}/artifacts/report"),
        )
        .leased(format!("{of_runner}/content"), format!("{of_lease}/content"))
        .leased(format!("{of_runner}/finish"), format!("{of_lease}/finish"))
        .leased(
            format!("{of_runner}/inputs/{{name}}"),
            format!("{of_lease}/inputs/report"),
        )
        .leased(format!("{of_runner}/output"), format!("{of_lease}/output"))
        .leased(format!("{of_runner}/started"), format!("{of_lease}/started"))
        .value("epoch", leased.epoch)
        .takes_wrong_parts(
            "POST /v1/attempt-batches",
            "each attempt has an outcome of its own: a wrong one is refused alone",
        )
}

#[tokio::test]
async fn every_operation_keeps_the_rules_of_every_api() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    let walked = walk(&world, &runner).await.run(&openapi().unwrap()).await;
    assert!(
        walked.faults.is_empty(),
        "{} of {} checks failed:\n{}",
        walked.faults.len(),
        walked.checks,
        walked.faults.join("\n")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_to_generated_requests_is_as_the_document_says() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    let generated = walk(&world, &runner).await.generate(&openapi().unwrap()).await;
    assert!(generated.holds, "{}", generated.report);
    println!("{}", generated.report);
}
