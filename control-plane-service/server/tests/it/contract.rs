use api_kit::testing::Walk;
use control_plane_api::OperationState;
use serde_json::json;

use crate::plans::{Building, plan};
use crate::world::World;

/// What there is to walk on: an operation that is over, and one that waits at its gate.
async fn walk(world: &World) -> Walk {
    let id = world.begin(plan(&[1]).job("check", &[])).await;
    world.until_state(id, OperationState::Succeeded).await;
    let of = |rest: &str| {
        (
            format!("/v1/operations/{{operation_id}}{rest}"),
            format!("/v1/operations/{id}{rest}"),
        )
    };
    let gated = world.begin(plan(&[2]).gate("go", &[]).job("check", &["go"])).await;
    let gate = world.open_gate(gated).await;
    let decisions = "/v1/operations/{operation_id}/gates/{gate_id}/decisions";
    let interventions = "/v1/operations/{operation_id}/interventions";
    let another = world.planner.keep(plan(&[3]).job("check", &[]));
    let mut walk = Walk::new(world.base.clone(), world.minter(), world.organization)
        .object(
            decisions,
            format!("/v1/operations/{gated}/gates/{}/decisions", gate.gate_id.unwrap()),
        )
        .object(interventions, format!("/v1/operations/{gated}/interventions"))
        .body(
            format!("POST {decisions}"),
            json!({"decision": "approve", "covers_digest": gate.covers_digest}),
        )
        .body(
            format!("POST {interventions}"),
            json!({"intervention": {"kind": "pause"}, "reason": "a look"}),
        )
        .body(
            "POST /v1/operations",
            serde_json::to_value(World::create(&another)).unwrap(),
        );
    for rest in ["", "/node-runs", "/events", "/gates", "/watch", "/proof"] {
        let (template, path) = of(rest);
        walk = walk.object(template, path);
    }
    walk
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_of_the_api_keeps_the_rules_of_every_api() {
    let world = World::start().await;
    let document = world.document.clone().unwrap();
    let walked = walk(&world).await.run(&document).await;
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
    let document = world.document.clone().unwrap();
    let generated = walk(&world).await.generate(&document).await;
    assert!(generated.holds, "{}", generated.report);
    println!("{}", generated.report);
}
