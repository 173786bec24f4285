use api_kit::testing::scrape;
use control_plane_api::OperationState;
use control_plane_server::openapi;

use crate::plans::{Building as _, plan};
use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_metrics_tell_how_many_operations_are_open_in_which_state() {
    let world = World::start().await;
    for number in [1, 2] {
        let id = world.begin(plan(&[number]).gate("go", &[]).job("check", &["go"])).await;
        world.open_gate(id).await;
    }
    let done = world.begin(plan(&[3]).job("check", &[])).await;
    world.until_state(done, OperationState::Succeeded).await;
    let told = scrape(&world.base).await;
    let open = |state| told.value("platform_operations", &[("state", state)]);
    assert_eq!(
        (open("waiting_gate"), open("running"), open("unresolved")),
        (Some(2.0), Some(0.0), Some(0.0))
    );
    assert_eq!(open("other"), Some(0.0), "every state has a name");
    let created = [("method", "POST"), ("route", "/v1/operations"), ("status", "201")];
    assert_eq!(told.value("platform_http_requests_total", &created), Some(3.0));
    for name in [
        "platform_inbox",
        "platform_effects_failing",
        "platform_projection_parked",
        "platform_feed_parked",
    ] {
        assert_eq!(told.value(name, &[]), Some(0.0), "{name}");
    }
    assert_eq!(told.value("platform_effects", &[("asked", "other")]), Some(0.0));
    assert_eq!(told.value("platform_figures_current", &[]), Some(1.0));
    assert_eq!(told.unbounded(&openapi()), Vec::<String>::new());
}
