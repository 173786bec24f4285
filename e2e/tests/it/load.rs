//! Ten times as many operations at once as there are places to run them.

use control_plane_api::OperationState;
use e2e::{Options, Scenario};
use execution_plane_api::AttemptListQuery;

use crate::stage::Stage;
use crate::stories::Story;
use crate::teller::answered;

const SLOTS: u32 = 4;

/// One line on the host, which may be shared.
fn shared() -> Scenario {
    let template = r#"name: main
title: Mark a host that others use as well
description: Adds one line to a file on the host.
parameters:
  mark:
    description: The file.
    schema: {type: string, pattern: "^[a-z0-9-]+$"}
requirements:
  host:
    resource_type: compute.node
    count: {min: 1, max: 1}
    capabilities: [os.linux]
    connection: true
    claim: shared
nodes:
  - id: mark
    title: Mark it
    kind: job
    job:
      type: ssh
      targets: host
      parameters:
        script: echo "$PLATFORM_ATTEMPT" >> /srv/${parameters.mark}
      secrets: [{secret_ref: "vault://ssh/hosts"}]
      timeout_seconds: 120
      idempotent: false
"#;
    Scenario::new("shared", template)
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
