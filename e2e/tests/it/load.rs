//! Ten times as many operations at once as there are places to run them.

use control_plane_api::OperationState;
use e2e::{MARKS, Options, Scenario, takes_a_host};
use execution_plane_api::AttemptListQuery;

use crate::stage::Stage;
use crate::stories::Story;
use crate::teller::answered;

const SLOTS: u32 = 4;

/// One line on the host, which may be shared.
fn shared() -> Scenario {
    let head =
        "name: main\ntitle: Mark a host that others use as well\ndescription: Adds one line to a file on the host.\n";
    Scenario::new("shared", &format!("{head}{}{MARKS}", takes_a_host("shared")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_times_as_many_operations_as_slots_all_end_and_each_runs_once() {
    let options = Options {
        capacity: SLOTS,
        // Whether a starved machine renews in time is another question.
        lease_seconds: 30.0,
        ..Options::default()
    };
    let stage = Stage::up(&options).await;
    stage.teller.publish(&shared()).await;
    let marks: Vec<String> = (0..SLOTS * 10).map(|index| format!("l{index}")).collect();
    let told = marks.iter().map(|mark| async {
        let id = stage.teller.start("shared", mark).await;
        stage.teller.settled(id).await
    });
    let operations = futures::future::join_all(told).await;
    for (operation, mark) in operations.iter().zip(&marks) {
        assert_eq!(
            operation.summary.state,
            OperationState::Succeeded,
            "{mark}: {operation:#?}"
        );
        assert_eq!(stage.world.lines(0, mark), 1, "{mark}: ran once");
        let query = AttemptListQuery {
            operation_id: Some(operation.summary.id),
            ..Default::default()
        };
        let attempts = answered("attempts", || stage.teller.execution.attempts(&query)).await;
        assert_eq!(attempts.items.len(), 1, "{mark}: one attempt was enough");
    }
    let id = stage.teller.start("one-host", "afterwards").await;
    let operation = stage.teller.settled(id).await;
    assert_eq!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
    stage
        .nothing_is_left_of(&operation, Story::Straight, "afterwards")
        .await;
    stage.catalog_is_whole().await;
    stage.deployment.stop().await;
}
