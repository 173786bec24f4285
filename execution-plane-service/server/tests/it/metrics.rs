use api_kit::testing::scrape;
use execution_plane_server::openapi;

use crate::harness::{World, noop};

#[tokio::test]
async fn the_metrics_tell_what_is_queued_leased_unacknowledged_and_lost() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop()]).await;
    let lease = runner.one().await;
    runner.finish(&lease, 0).await.unwrap();
    world.submit(&[noop()]).await;
    runner.one().await;
    world.submit(&[noop(), noop()]).await;
    let base = |world: &World| format!("http://{}", world.address);
    let told = scrape(&base(&world)).await;
    let live = |state| told.value("platform_attempts", &[("state", state)]);
    assert_eq!(
        (live("queued"), live("leased"), live("running")),
        (Some(2.0), Some(1.0), Some(0.0))
    );
    assert_eq!(live("other"), Some(0.0), "every state has a name");
    assert_eq!(told.value("platform_results_unacknowledged", &[]), Some(1.0));
    assert_eq!(told.value("platform_runners", &[("state", "taking")]), Some(1.0));
    assert_eq!(told.value("platform_leases_overdue", &[]), Some(0.0));
    assert_eq!(told.value("platform_attempts_lost_total", &[]), Some(0.0));
    let batches = [("method", "POST"), ("route", "/v1/attempt-batches"), ("status", "200")];
    assert_eq!(told.value("platform_http_requests_total", &batches), Some(3.0));
    assert_eq!(told.unbounded(&openapi().unwrap()), Vec::<String>::new());

    world.leases_run_out().await;
    while world.results(vec![lease.attempt_id]).await.is_empty() {}
    let after = scrape(&base(&world)).await;
    let overdue = [("cause", "overdue")];
    assert_eq!(after.value("platform_attempts_lost_total", &overdue), Some(1.0));
}
