//! A database that answers, but not in time: statements are ended, the pool runs dry.

use control_plane_api::{CreateOperation, OperationState};
use e2e::Options;
use resource_catalog_api::ApplyCapabilityDefinition;
use tokio::sync::oneshot;

use crate::stage::Stage;
use crate::stories::Story;
use crate::teller::{plan_of, until};

/// Keeps everybody from a table until it is told to let go.
async fn locked(
    stage: &Stage,
    database: &'static str,
    table: &str,
) -> (oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
    let client = stage.deployment.superuser(database).await;
    let lock = format!("BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE");
    client.batch_execute(&lock).await.expect("a lock");
    let (let_go, told) = oneshot::channel();
    let holding = tokio::spawn(async move {
        // Gone without a word is told as well.
        let _ = told.await;
        client.batch_execute("ROLLBACK").await.expect("the server is up");
    });
    (let_go, holding)
}

/// Every answer while a table is locked is a clear refusal, however many ask; afterwards all is as before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_does_not_answer_in_time_is_told_as_503_and_leaves_nothing_half_written() {
    let stage = Stage::up(&Options::default()).await;
    let create = CreateOperation {
        plan_id: None,
        expected_digest: None,
        plan: Some(plan_of("one-host", "stuck")),
        on_overlap: Default::default(),
        reason: "stuck".into(),
        labels: Default::default(),
    };
    let before = stage
        .deployment
        .number("control_plane", "SELECT count(*) FROM operations")
        .await;
    let (let_go, holding) = locked(&stage, "control_plane", "operations, plans").await;
    // More than there are connections: some wait for a statement, the others for a connection.
    let calls = (0..30).map(|index| {
        let (control, create) = (&stage.teller.control, &create);
        async move { control.create_operation(create, &format!("stuck-{index}")).await }
    });
    for answer in futures::future::join_all(calls).await {
        let error = answer.expect_err("nothing can be written");
        assert_eq!(error.status(), Some(503), "{error:?}");
    }
    let_go.send(()).expect("it is held");
    holding.await.expect("no panic");
    let after = stage
        .deployment
        .number("control_plane", "SELECT count(*) FROM operations")
        .await;
    assert_eq!(after, before, "what was refused is not there");
    let orphans =
        "SELECT count(*) FROM wakeups w WHERE NOT EXISTS (SELECT 1 FROM operations o WHERE o.id = w.operation_id)";
    assert_eq!(stage.deployment.number("control_plane", orphans).await, 0);
    goes_on(&stage, "after-control").await;

    let (let_go, holding) = locked(&stage, "resource_catalog", "capability_definitions").await;
    let definition = ApplyCapabilityDefinition {
        parent: None,
        description: "late".into(),
        attribute_schema: None,
    };
    let name = "site.marked".parse().expect("a name");
    let catalog = &stage.teller.catalog;
    let error = catalog.apply_capability_definition(&name, &definition, None).await;
    assert_eq!(error.expect_err("nothing can be written").status(), Some(503));
    let_go.send(()).expect("it is held");
    holding.await.expect("no panic");
    goes_on(&stage, "after-catalog").await;
    stage.deployment.stop().await;
}

/// An operation that was under way while execution-plane's database stood still ends as if nothing had been.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_outlasts_a_database_that_stands_still_and_one_that_ends_all_sessions() {
    let options = Options {
        lease_seconds: 30.0,
        ..Options::default()
    };
    let stage = Stage::up(&options).await;
    for (index, table) in ["attempts", "output_segments", "results"].into_iter().enumerate() {
        let mark = format!("still-{index}");
        let id = stage.teller.start("one-host", &mark).await;
        let (let_go, holding) = locked(&stage, "execution_plane", table).await;
        let stands =
            "SELECT count(*) FROM pg_stat_activity WHERE datname = 'execution_plane' AND wait_event_type = 'Lock'";
        until("execution-plane waits for its database", async || {
            (stage.deployment.number("execution_plane", stands).await > 0).then_some(())
        })
        .await;
        let_go.send(()).expect("it is held");
        holding.await.expect("no panic");
        // As in a failover: every connection ends in the middle of what it does.
        let all = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                   WHERE datname IN ('resource_catalog', 'control_plane', 'execution_plane') AND pid <> pg_backend_pid()";
        stage.deployment.number("control_plane", all).await;
        let operation = stage.teller.settled(id).await;
        assert_eq!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
        stage.nothing_is_left_of(&operation, Story::Straight, &mark).await;
    }
    stage.catalog_is_whole().await;
    stage.deployment.stop().await;
}

async fn goes_on(stage: &Stage, mark: &str) {
    let id = stage.teller.start("one-host", mark).await;
    let operation = stage.teller.settled(id).await;
    assert_eq!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
    stage.nothing_is_left_of(&operation, Story::Straight, mark).await;
}
