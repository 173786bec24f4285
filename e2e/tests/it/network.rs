//! The connections between the processes break in every way, for longer than a lease, under an operation.

use std::time::Duration;

use control_plane_api::OperationState;
use e2e::{Link, Options};
use fault_proxy::{Fault, Way};

use crate::stage::Stage;
use crate::stories::Story;

/// Longer than a lease with its grace.
const LONG: Duration = Duration::from_secs(4);

/// Every fault, with how long it holds.
const FAULTS: [(Fault, Duration); 7] = [
    (Fault::Refuse, LONG),
    (Fault::Reset, LONG),
    (Fault::HoldAll, LONG),
    (Fault::Hold(Way::ToServer), LONG),
    (Fault::Hold(Way::ToCaller), LONG),
    (Fault::Delay(Duration::from_millis(150)), LONG),
    (Fault::CutAfter(300), LONG),
];

/// Breaks one link under an operation, mends it, and checks what came of it.
#[expect(clippy::print_stdout, reason = "a test's own report")]
async fn under_faults(link: Link, cut_at_last: bool) {
    let mut options = Options {
        breakable: true,
        ..Options::default()
    };
    if link != Link::RunnerToExecutionPlane {
        // No lease is at stake, so none may run out for want of time on a busy machine.
        options.lease_seconds = 30.0;
    }
    let stage = Stage::up(&options).await;
    let mut ends = Vec::new();
    for (index, (fault, long)) in FAULTS.into_iter().enumerate() {
        let mark = format!("n{index}");
        let id = stage.teller.start("one-host", &mark).await;
        stage.deployment.link(link).set(fault);
        tokio::time::sleep(long).await;
        if cut_at_last {
            // What was held never arrives: the connection is found dead.
            stage.deployment.link(link).set(Fault::Reset);
            tokio::task::yield_now().await;
        }
        stage.deployment.link(link).heal();
        let operation = stage.teller.end(id).await;
        let state = operation.summary.state;
        // Between services whatever broke is asked again.
        if link != Link::RunnerToExecutionPlane || matches!(fault, Fault::Delay(_)) {
            assert_eq!(state, OperationState::Succeeded, "{fault:?}: {operation:#?}");
        }
        stage.nothing_is_left_of(&operation, Story::Straight, &mark).await;
        ends.push(format!("{fault:?}: {}", state.as_str()));
    }
    stage.catalog_is_whole().await;
    println!("{link:?}: {ends:#?}");
    stage.deployment.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_network_between_control_plane_and_catalog_costs_time_and_nothing_else() {
    under_faults(Link::ControlPlaneToCatalog, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_network_between_control_plane_and_execution_plane_costs_time_and_nothing_else() {
    under_faults(Link::ControlPlaneToExecutionPlane, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_note_40_a_broken_network_between_runner_and_execution_plane_runs_nothing_twice() {
    under_faults(Link::RunnerToExecutionPlane, true).await;
}
