//! A process that is stopped for longer than a lease and then goes on, believing that no time has passed.

use control_plane_api::OperationState;
use e2e::{Options, Role, Scenario};
use execution_plane_api::{AttemptListQuery, AttemptState};
use kernel::id::OperationId;
use rustix::process::Signal;

use crate::stage::Stage;
use crate::stories::{Promised, Story, until_told};
use crate::teller::{answered, until};

/// A job that goes on until it is told, and tells that it has ended.
fn patient() -> Scenario {
    until_told("patient")
}

async fn attempt_states(stage: &Stage, id: OperationId) -> Vec<AttemptState> {
    let query = AttemptListQuery {
        operation_id: Some(id),
        ..Default::default()
    };
    let attempts = answered("attempts", || stage.teller.execution.attempts(&query)).await;
    attempts.items.iter().map(|attempt| attempt.state).collect()
}

/// Work goes on after all, on the same runner.
async fn a_further_one_succeeds(stage: &Stage, mark: &str) {
    let id = stage.teller.start("one-host", mark).await;
    let operation = stage.teller.settled(id).await;
    assert_eq!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
    stage.nothing_is_left_of(&operation, Story::Straight, mark).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_note_39_a_runner_paused_past_its_lease_comes_back_and_is_fenced_off() {
    let stage = Stage::up(&Options::default()).await;
    stage.teller.publish(&patient()).await;
    let id = stage.teller.start("patient", "paused").await;
    stage.running(id, "paused").await;
    stage.deployment.signal(Role::Runner, Signal::STOP);
    let operation = stage.teller.settled(id).await;
    assert_eq!(operation.summary.state, OperationState::Unresolved, "{operation:#?}");
    assert_eq!(attempt_states(&stage, id).await, [AttemptState::Lost]);
    // The job ends well on the host while the runner sleeps: its report will come too late.
    stage.world.write(0, "paused-go", "");
    until("the job ends on the host", async || {
        (stage.world.lines(0, "paused-end") > 0).then_some(())
    })
    .await;
    stage.deployment.signal(Role::Runner, Signal::CONT);
    stage.runner_is_online().await;
    let operation = stage.teller.operation(id).await;
    assert_eq!(operation.summary.state, OperationState::Unresolved, "{operation:#?}");
    let operation = stage.teller.end(id).await;
    stage.nothing_is_left_of(&operation, Story::Lost, "paused").await;
    a_further_one_succeeds(&stage, "after-runner").await;
    // By now the late report was told and refused.
    assert_eq!(
        attempt_states(&stage, id).await,
        [AttemptState::Lost],
        "the end of an attempt never changes"
    );
    let again = stage.teller.operation(id).await;
    assert_eq!(again.summary, operation.summary, "nor does the end of an operation");
    stage.deployment.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_note_39_an_execution_plane_paused_past_the_lease_takes_no_second_start() {
    let stage = Stage::up(&Options::default()).await;
    stage.teller.publish(&patient()).await;
    let id = stage.teller.start("patient", "plane").await;
    stage.running(id, "plane").await;
    stop_between_transactions(&stage, Role::ExecutionPlane, "execution_plane").await;
    // Nobody renews the lease, and the runner's own clock ends the job: longer than lease and grace together.
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    stage.world.write(0, "plane-go", "");
    stage.deployment.signal(Role::ExecutionPlane, Signal::CONT);
    let operation = stage.teller.end(id).await;
    assert_ne!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
    stage.nothing_is_left_of(&operation, Story::Lost, "plane").await;
    a_further_one_succeeds(&stage, "after-plane").await;
    stage.deployment.stop().await;
}

/// Stops a service at a moment at which it holds no transaction, so that others can go on without it.
async fn stop_between_transactions(stage: &Stage, role: Role, database: &str) {
    let open = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}' AND state LIKE 'idle in transaction%'"
    );
    loop {
        stage.deployment.signal(role, Signal::STOP);
        if stage.deployment.number(database, &open).await == 0 {
            return;
        }
        stage.deployment.signal(role, Signal::CONT);
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_note_39_a_paused_control_plane_comes_back_to_what_another_one_finished() {
    let stage = Stage::up(&Options::default()).await;
    let twin = stage.deployment.launch_twin(Role::ControlPlane).await;
    let mut other = stage.teller.clone();
    other.control = stage.deployment.control_at(&twin);
    stage.teller.publish(&patient()).await;
    for index in 0..3 {
        let mark = format!("holder-{index}");
        let id = stage.teller.start("patient", &mark).await;
        stage.running(id, &mark).await;
        stop_between_transactions(&stage, Role::ControlPlane, "control_plane").await;
        stage.world.write(0, &format!("{mark}-go"), "");
        let operation = other.settled(id).await;
        assert_eq!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
        stage.deployment.signal(Role::ControlPlane, Signal::CONT);
        // The one that was paused tells the same, and goes on with the next one.
        assert_eq!(stage.teller.operation(id).await.summary, operation.summary);
        assert_eq!(attempt_states(&stage, id).await, [AttemptState::Succeeded]);
        stage.promises_are_kept(&Promised::of(id), &mark).await;
        stage.nothing_is_left_of(&operation, Story::Rebuilt, &mark).await;
        a_further_one_succeeds(&stage, &format!("after-{index}")).await;
    }
    stage.deployment.stop().await;
}
