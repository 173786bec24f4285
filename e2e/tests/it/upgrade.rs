//! Two versions side by side: peers that say more than is known and ask less than could be asked, words that
//! nobody knows yet, and a database that a newer version has migrated under requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use control_plane_api::OperationState;
use e2e::{Options, Role};
use execution_plane_api::CommandPolicyBody;
use resource_catalog_api::ApplyCapabilityDefinition;

use crate::stage::Stage;
use crate::stories::{Promised, Story};
use crate::teller::{plan_of, until};

const SERVICES: [Role; 3] = [Role::ResourceCatalog, Role::ControlPlane, Role::ExecutionPlane];

fn unhurried() -> Options {
    Options {
        // No lease is at stake.
        lease_seconds: 30.0,
        ..Options::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peers_of_another_version_are_understood_by_services_runner_and_command_line() {
    let options = Options {
        other_version: true,
        ..unhurried()
    };
    let stage = Stage::up(&options).await;
    for story in [
        Story::Written,
        Story::Straight,
        Story::Course,
        Story::Cancelled,
        Story::Rebuilt,
    ] {
        let mark = format!("{story:?}").to_lowercase();
        let promised = stage.tell(story, &mark).await;
        stage.promises_are_kept(&promised, &mark).await;
        if let Some(id) = promised.operation {
            let operation = stage.teller.end(id).await;
            if matches!(story, Story::Straight | Story::Course) {
                assert_eq!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
            }
            stage.nothing_is_left_of(&operation, story, &mark).await;
        }
    }
    let id = stage.teller.start("one-host", "by-hand").await;
    let operation = stage.teller.settled(id).await;
    assert_eq!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
    let id = id.to_string();
    let commands: [&[&str]; 12] = [
        &["get", "operations"],
        &["get", "resources"],
        &["get", "runners"],
        &["get", "projections"],
        &["get", "claims"],
        &["get", "packs"],
        &["get", "attempts", "-o", "json"],
        &["describe", "operation", &id],
        &["describe", "resource", "node/web-1"],
        &["logs", &id],
        &["watch", &id],
        &["plan", "one-host/main", "-e", "test", "-p", "mark=planned"],
    ];
    for command in commands {
        let told = stage.deployment.platform(command);
        assert!(!told.is_empty(), "{command:?}");
    }
    stage.catalog_is_whole().await;
    let mut left_out = 0;
    for role in SERVICES {
        let changed = stage.deployment.other_version(role).changed();
        assert!(changed.added > 0, "{role:?} had something to add: {changed:?}");
        left_out += changed.left_out;
    }
    assert!(left_out > 0, "something was left out");
    stage.deployment.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_word_of_a_newer_version_is_told_as_such_and_costs_nothing_once_it_is_known() {
    let options = Options {
        other_version: true,
        ..unhurried()
    };
    let stage = Stage::up(&options).await;
    let id = stage.teller.start("one-host", "earlier").await;
    stage.teller.settled(id).await;

    // For people.
    let control = stage.deployment.other_version(Role::ControlPlane);
    control.replace("succeeded", "hibernating");
    let output = stage
        .deployment
        .try_platform(&["describe", "operation", &id.to_string()]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success(),
        "what cannot be read is not shown as something else"
    );
    assert!(told.contains("hibernating"), "the word is told: {told}");
    control.heal();

    // For control-plane: a result that it cannot read is no result, and is there when it can.
    let execution = stage.deployment.other_version(Role::ExecutionPlane);
    let before = execution.changed().replaced;
    execution.replace("success", "splendour");
    let id = stage.teller.start("one-host", "splendid").await;
    until("results have come in words that are not known", async || {
        (execution.changed().replaced > before + 2).then_some(())
    })
    .await;
    let operation = stage.teller.operation(id).await;
    assert!(!operation.summary.state.is_end(), "{operation:#?}");
    execution.heal();
    let operation = stage.teller.settled(id).await;
    assert_eq!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
    stage.promises_are_kept(&Promised::of(id), "splendid").await;
    stage.nothing_is_left_of(&operation, Story::Straight, "splendid").await;
    stage.deployment.stop().await;
}

/// What the first step of every upgrade does: tables get a column more, and the ledger a migration that this
/// version does not have.
async fn migrate_as_a_newer_version(stage: &Stage, database: &str) {
    let tables = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace \
                  AND relkind IN ('r', 'p') AND NOT relispartition AND relname <> '_sqlx_migrations'";
    let tables = stage.deployment.rows(database, tables).await;
    assert!(tables.len() > 5, "{database} has tables: {tables:?}");
    let session = stage.deployment.superuser(database).await;
    session
        .batch_execute("SET lock_timeout = '500ms'")
        .await
        .expect("a setting");
    for table in tables.iter().filter_map(|row| row[0].as_deref()) {
        let wider = format!("ALTER TABLE {table} ADD COLUMN of_a_newer_version text");
        // A migration stands back when others hold the table for long.
        until(table, async || session.batch_execute(&wider).await.ok()).await;
    }
    let applied = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                   VALUES (9000, 'of a newer version', true, '\\x00', 0)";
    session.batch_execute(applied).await.expect("a migration");
}

/// Writes to every service, none of it refused, until told; how often.
async fn unrefused_writes(stage: Arc<Stage>, told: Arc<AtomicBool>, count: Arc<AtomicUsize>, lane: &'static str) {
    while !told.load(Ordering::SeqCst) {
        let number = count.fetch_add(1, Ordering::SeqCst);
        let definition = ApplyCapabilityDefinition {
            parent: None,
            description: number.to_string(),
            attribute_schema: None,
        };
        let name = format!("site.{lane}").parse().expect("a name");
        let applied = stage
            .teller
            .catalog
            .apply_capability_definition(&name, &definition, None);
        applied.await.expect("the catalog takes it");
        let plan = plan_of("one-host", &format!("{lane}-{number}"));
        let shown = stage.teller.control.preview(&plan, None).await;
        shown.expect("control-plane plans it");
        let policy = CommandPolicyBody::default();
        let name = format!("{lane}-{number}");
        let put = stage.teller.execution.put_command_policy(&name, None, &policy);
        put.await.expect("execution-plane takes it");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_version_migrates_under_requests_and_this_one_serves_on_beside_it_and_starts_again() {
    let stage = Stage::up(&unhurried()).await;
    let (told, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let lanes = ["one", "other"];
    let writing = lanes.map(|lane| tokio::spawn(unrefused_writes(stage.clone(), told.clone(), count.clone(), lane)));
    for (index, database) in e2e::DATABASES.into_iter().enumerate() {
        let mark = format!("under-{index}");
        let (promised, ()) = tokio::join!(
            stage.tell(Story::Straight, &mark),
            migrate_as_a_newer_version(&stage, database)
        );
        let id = promised.operation.expect("an operation");
        let operation = stage.teller.settled(id).await;
        assert_eq!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
        stage.nothing_is_left_of(&operation, Story::Straight, &mark).await;
    }
    // A further process of this version starts on what the newer one left, while the first serves.
    for role in SERVICES {
        stage.deployment.launch_twin(role).await;
    }
    let written = count.load(Ordering::SeqCst);
    until("writes go on", async || {
        (count.load(Ordering::SeqCst) > written + 4).then_some(())
    })
    .await;
    told.store(true, Ordering::SeqCst);
    for lane in writing {
        lane.await.expect("no write was refused");
    }
    // And so does one that takes the place of the first.
    for role in SERVICES {
        stage.deployment.kill(role).await;
        stage.launch(role);
        stage.deployment.wait_ready(role).await;
    }
    for story in [Story::Written, Story::Straight] {
        let mark = format!("again-{story:?}").to_lowercase();
        let promised = stage.tell(story, &mark).await;
        stage.promises_are_kept(&promised, &mark).await;
        if let Some(id) = promised.operation {
            let operation = stage.teller.settled(id).await;
            assert_eq!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
            stage.nothing_is_left_of(&operation, story, &mark).await;
        }
    }
    stage.catalog_is_whole().await;
    stage.deployment.stop().await;
}
