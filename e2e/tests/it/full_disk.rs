//! The database's disk is full: at first its tables cannot grow, then it cannot even log, and dies of that.

use client_kit::ClientError;
use control_plane_api::OperationState;
use e2e::{Options, Role};
use execution_plane_api::{ArgvPattern, CommandPolicyBody};
use resource_catalog_api::ApplyCapabilityDefinition;

use crate::stage::Stage;
use crate::stories::{Promised, Story, until_told};
use crate::teller::{plan_of, until};

/// Room for the databases and a good deal of their log.
const DISK: u64 = 320 << 20;

/// Text that takes the room that it says.
fn incompressible(length: usize) -> String {
    let mut text = String::new();
    while text.len() < length {
        text.push_str(&uuid::Uuid::new_v4().simple().to_string());
    }
    text
}

/// Something large to write, of which an answer with yes makes a promise.
async fn write(stage: &Stage, role: Role, index: usize) -> Result<(), ClientError> {
    let teller = &stage.teller;
    match role {
        Role::ResourceCatalog => {
            let definition = ApplyCapabilityDefinition {
                parent: None,
                description: incompressible(1_900),
                attribute_schema: None,
            };
            let name = format!("site.full-{index}").parse().expect("a name");
            let applied = teller
                .catalog
                .apply_capability_definition(&name, &definition, None)
                .await;
            applied.map(drop)
        }
        Role::ControlPlane => {
            let plan = plan_of("one-host", &format!("full-{index}"));
            teller.control.preview(&plan, None).await.map(drop)
        }
        _ => {
            let words = (0..60).map(|_| incompressible(1_000)).collect();
            let body = CommandPolicyBody {
                allow: vec![ArgvPattern { argv: words }],
                ..CommandPolicyBody::default()
            };
            let name = format!("full-{index}");
            let put = teller.execution.put_command_policy(&name, None, &body);
            put.await.map(drop)
        }
    }
}

/// Writes until it is refused; how often it was taken, and the refusal.
async fn written(stage: &Stage, role: Role) -> (usize, ClientError) {
    for index in 0..20_000 {
        if let Err(error) = write(stage, role, index).await {
            return (index, error);
        }
    }
    panic!("{role:?} has room without end")
}

/// How many of a service's writes are there.
async fn kept(stage: &Stage, role: Role) -> i64 {
    let (database, count) = match role {
        Role::ResourceCatalog => (
            "resource_catalog",
            "SELECT count(*) FROM capability_definitions WHERE name LIKE 'site.full-%'",
        ),
        Role::ControlPlane => ("control_plane", "SELECT count(*) FROM plans"),
        _ => (
            "execution_plane",
            "SELECT count(*) FROM command_policies WHERE name LIKE 'full-%'",
        ),
    };
    stage.deployment.number(database, count).await
}

/// Writes to the server's log until there is no room for that, either, and the server is gone and stays so. One
/// that ends and recovers in what room it has left is written to again.
async fn log_until_it_dies(stage: &Stage) {
    let logged = "SELECT pg_logical_emit_message(true, 'test', repeat('x', 1000000))";
    until("the database cannot be started again", async || {
        if let Ok(session) = stage.deployment.try_superuser("control_plane").await {
            // Refused, cut off or taken: what counts is what becomes of the server.
            let _ = session.batch_execute(logged).await;
        }
        let log = stage.deployment.log(Role::Database);
        (log.matches("the database server cannot be started").count() >= 2).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_under_the_databases_is_told_and_everything_goes_on_once_there_is_room() {
    let options = Options {
        // The runner cannot renew for as long as the database is away; whether it then ends its job in time
        // is another question.
        lease_seconds: 120.0,
        ..Options::default()
    };
    let stage = Stage::up(&options).await;
    stage.teller.publish(&until_told("patient")).await;
    let mut disk = stage.deployment.move_database_to_small_disk(DISK).await;
    goes_on(&stage, "moved").await;
    let id = stage.teller.start("patient", "under-way").await;
    stage.running(id, "under-way").await;
    let plans = kept(&stage, Role::ControlPlane).await;

    disk.fill();
    let services = [Role::ResourceCatalog, Role::ControlPlane, Role::ExecutionPlane];
    let mut taken = Vec::new();
    for role in services {
        let (count, error) = written(&stage, role).await;
        let problem = error.problem().unwrap_or_else(|| panic!("{role:?}: {error:?}"));
        assert_eq!(
            (problem.status, problem.code.as_str()),
            (503, "storage_full"),
            "{role:?}: {problem}"
        );
        assert!(
            problem.retry_after_seconds.is_some() && problem.remedy.is_some(),
            "{problem:?}"
        );
        taken.push(count);
    }
    // What needs no room is answered.
    let operation = stage.teller.control.operation(id).await.expect("reading goes on");
    assert_eq!(operation.summary.state, OperationState::Running, "{operation:#?}");

    log_until_it_dies(&stage).await;
    for role in services {
        let error = write(&stage, role, 999_999).await.expect_err("there is no database");
        assert_eq!(error.status(), Some(503), "{role:?}: {error:?}");
    }
    disk.make_room();
    stage.deployment.database_answers().await;
    stage.world.write(0, "under-way-go", "");
    let operation = stage.teller.settled(id).await;
    assert_eq!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
    assert_eq!(stage.world.lines(0, "under-way"), 1, "it ran once");
    stage.promises_are_kept(&Promised::of(id), "under-way").await;
    stage.nothing_is_left_of(&operation, Story::Rebuilt, "under-way").await;
    for (role, taken) in services.into_iter().zip(taken) {
        let more = if role == Role::ControlPlane { plans } else { 0 };
        let kept = kept(&stage, role).await - more;
        assert_eq!(
            usize::try_from(kept).ok(),
            Some(taken),
            "{role:?} has what it took, and no more"
        );
    }
    goes_on(&stage, "afterwards").await;
    stage.catalog_is_whole().await;
    stage.deployment.stop().await;
}

async fn goes_on(stage: &Stage, mark: &str) {
    let id = stage.teller.start("one-host", mark).await;
    let operation = stage.teller.settled(id).await;
    assert_eq!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
    stage.nothing_is_left_of(&operation, Story::Straight, mark).await;
}
