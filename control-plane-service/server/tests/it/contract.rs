use api_kit::testing::Walk;
use control_plane_api::OperationState;

use crate::plans::{Building, plan};
use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_of_the_api_keeps_the_rules_of_every_api() {
    let world = World::start().await;
    let id = world.begin(plan(&[1]).job("check", &[])).await;
    world.until_state(id, OperationState::Succeeded).await;
    let document = world.document.clone().unwrap();
    let of = |rest: &str| {
        (
            format!("/v1/operations/{{operation_id}}{rest}"),
            format!("/v1/operations/{id}{rest}"),
        )
    };
    let mut walk = Walk::new(world.base.clone(), world.minter(), world.organization);
    for rest in ["", "/node-runs", "/events", "/gates", "/watch"] {
        let (template, path) = of(rest);
        walk = walk.object(template, path);
    }
    let walked = walk.run(&document).await;
    assert!(
        walked.faults.is_empty(),
        "{} of {} checks failed:\n{}",
        walked.faults.len(),
        walked.checks,
        walked.faults.join("\n")
    );
}
