//! What every durable runtime must do, whatever is behind it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use kernel::id::OperationId;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Script;
use crate::DurableRuntime;

struct Running {
    runtime: Arc<dyn DurableRuntime>,
    task: JoinHandle<()>,
    shutdown: CancellationToken,
}

impl Running {
    fn start(runtime: Arc<dyn DurableRuntime>, script: &Arc<Script>) -> Self {
        let shutdown = CancellationToken::new();
        let task = tokio::spawn({
            let (runtime, script, shutdown) = (runtime.clone(), script.clone(), shutdown.clone());
            async move { runtime.run(script.clone(), script, shutdown).await }
        });
        Self {
            runtime,
            task,
            shutdown,
        }
    }

    /// The process dies: nothing is finished, nothing is told.
    async fn crash(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    async fn stop(self) {
        self.shutdown.cancel();
        assert!(self.task.await.is_ok(), "a runtime ends without a panic");
    }
}

/// Runs every rule against fresh runtimes of `make`.
///
/// # Panics
/// When a rule is broken.
pub async fn suite<F>(make: F)
where
    F: Fn() -> Arc<dyn DurableRuntime>,
{
    a_signal_before_the_runtime_waits_is_not_lost(&make).await;
    duplicate_wakes_coalesce_and_never_overlap(&make).await;
    a_timer_means_ask_again(&make).await;
    a_crash_between_advance_and_effect_is_carried_on(&make).await;
    an_effect_is_retried_until_the_other_side_answers(&make).await;
    a_closed_operation_is_left_alone(&make).await;
    thousands_of_operations_are_all_carried_through(&make).await;
    waiting_costs_nothing(&make).await;
}

async fn a_signal_before_the_runtime_waits_is_not_lost<F: Fn() -> Arc<dyn DurableRuntime>>(make: &F) {
    let script = Arc::new(Script::default());
    let (told, untold) = (OperationId::new_v7(), OperationId::new_v7());
    let runtime = make();
    script.signal(told);
    runtime.notify(told);
    script.signal(untold);
    let running = Running::start(runtime, &script);
    script
        .until("a signal before the start is seen", |script| {
            script.settled() && script.reports(told) == 1
        })
        .await;
    script
        .until("a signal nobody told of is found by the sweep", |script| {
            script.reports(untold) == 1
        })
        .await;
    running.stop().await;
}

async fn duplicate_wakes_coalesce_and_never_overlap<F: Fn() -> Arc<dyn DurableRuntime>>(make: &F) {
    let script = Arc::new(Script::default());
    let operation = OperationId::new_v7();
    let running = Running::start(make(), &script);
    script.signal(operation);
    for _ in 0..10_000 {
        running.runtime.notify(operation);
    }
    script
        .until("the signal is drained", |script| {
            script.settled() && script.reports(operation) == 1
        })
        .await;
    running.stop().await;
    assert!(!script.overlapped(), "one operation is asked by one at a time");
    assert!(
        script.advances(operation) < 5_000,
        "wakes coalesce: {} advances",
        script.advances(operation)
    );
}

async fn a_timer_means_ask_again<F: Fn() -> Arc<dyn DurableRuntime>>(make: &F) {
    let script = Arc::new(Script::default());
    let operation = OperationId::new_v7();
    script.wake_at(operation, Utc::now() + Duration::from_millis(300));
    let running = Running::start(make(), &script);
    script
        .until("the time has come", |script| script.advances(operation) >= 1)
        .await;
    running.stop().await;
}

async fn a_crash_between_advance_and_effect_is_carried_on<F: Fn() -> Arc<dyn DurableRuntime>>(make: &F) {
    let script = Arc::new(Script::default());
    let operation = OperationId::new_v7();
    script.hang(true);
    let running = Running::start(make(), &script);
    script.signal(operation);
    running.runtime.notify(operation);
    script
        .until("the effect has begun", |script| script.refusals() >= 1)
        .await;
    running.crash().await;
    script.hang(false);
    let running = Running::start(make(), &script);
    script
        .until("another runtime performs it", |script| {
            script.settled() && script.reports(operation) == 1
        })
        .await;
    running.stop().await;
}

async fn an_effect_is_retried_until_the_other_side_answers<F: Fn() -> Arc<dyn DurableRuntime>>(make: &F) {
    let script = Arc::new(Script::default());
    let operation = OperationId::new_v7();
    script.unreachable(true);
    let running = Running::start(make(), &script);
    script.signal(operation);
    running.runtime.notify(operation);
    script.until("it is tried again", |script| script.refusals() >= 3).await;
    assert_eq!(script.reports(operation), 0);
    script.unreachable(false);
    script
        .until("it is performed at last", |script| script.reports(operation) == 1)
        .await;
    running.stop().await;
}

async fn a_closed_operation_is_left_alone<F: Fn() -> Arc<dyn DurableRuntime>>(make: &F) {
    let script = Arc::new(Script::default());
    let (closed, open) = (OperationId::new_v7(), OperationId::new_v7());
    script.unreachable(true);
    let running = Running::start(make(), &script);
    script.signal(closed);
    running.runtime.notify(closed);
    script
        .until("its effect was tried", |script| script.refusals() >= 1)
        .await;
    script.close(closed);
    script.unreachable(false);
    script.signal(open);
    running.runtime.notify(open);
    script
        .until("the other one is carried on", |script| script.reports(open) == 1)
        .await;
    running.stop().await;
    assert_eq!(script.reports(closed), 0, "a void effect does nothing");
}

async fn thousands_of_operations_are_all_carried_through<F: Fn() -> Arc<dyn DurableRuntime>>(make: &F) {
    let script = Arc::new(Script::default());
    let operations: Vec<OperationId> = (0..5_000).map(|_| OperationId::new_v7()).collect();
    let running = Running::start(make(), &script);
    for operation in &operations {
        script.signal(*operation);
        script.signal(*operation);
        running.runtime.notify(*operation);
    }
    let all = |script: &Script| operations.iter().all(|operation| script.reports(*operation) == 2);
    script
        .until("every one is carried through", |script| script.settled() && all(script))
        .await;
    running.stop().await;
    assert!(!script.overlapped());
}

async fn waiting_costs_nothing<F: Fn() -> Arc<dyn DurableRuntime>>(make: &F) {
    let script = Arc::new(Script::default());
    let operations: Vec<OperationId> = (0..1_000).map(|_| OperationId::new_v7()).collect();
    for operation in &operations {
        script.wake_at(*operation, Utc::now() + Duration::from_secs(3_600));
    }
    let running = Running::start(make(), &script);
    let before = (script.sweeps(), Instant::now());
    script
        .until("three sweeps", |script| script.sweeps() >= before.0 + 3)
        .await;
    let (sweeps, seconds) = (script.sweeps() - before.0, before.1.elapsed().as_secs());
    running.stop().await;
    assert!(sweeps <= seconds + 2, "{sweeps} sweeps in {seconds} s");
    assert!(operations.iter().all(|operation| script.advances(*operation) == 0));
}
