//! (d): resource updates a second over HTTP, beside the same SQL under pgbench.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contracts::{Changes, LifecycleStatus, ResourceUpdateCommand};
use e2e::{Deployment, Role};
use futures::future::join_all;
use identity::{BearerToken, RotatingToken};
use kernel::ResourceId;
use kernel::id::{CommandId, OperationId};
use resource_catalog_api::{ApplyResource, Client as Catalog, Outcome};
use serde_json::json;

use crate::ROUNDS;
use crate::commits::Counter;
use crate::table::{Row, Table, Target};

const CLIENTS: usize = 16;
const ROUND: Duration = Duration::from_secs(3);

/// A resource that can be updated, and its version.
pub async fn resource(deployment: &Deployment, index: usize) -> (ResourceId, i64) {
    let id: ResourceId = format!("node/bench-{index}").parse().expect("an id");
    let apply = ApplyResource {
        resource_type: "compute.node".parse().expect("a name"),
        environment: Some("bench".into()),
        labels: Default::default(),
        annotations: Default::default(),
        lifecycle_status: Some(LifecycleStatus::Running),
        desired_state: Default::default(),
        connection: Default::default(),
        edges: None,
    };
    let version = deployment
        .catalog
        .apply_resource(&id, &apply, None)
        .await
        .expect("a resource")
        .body
        .version;
    (id, version)
}

/// Updates come from services only.
fn service(deployment: &Deployment) -> Catalog {
    let token = deployment.platform(&["token", "mint", "service:bench", "--role", "service"]);
    let tokens = RotatingToken::new(BearerToken::new(token.trim().to_owned()));
    Catalog::new(deployment.address(Role::ResourceCatalog), Some(Arc::new(tokens))).expect("an address")
}

async fn client(deployment: &Deployment, catalog: &Catalog, index: usize) -> u64 {
    let (id, mut version) = resource(deployment, index).await;
    let started = Instant::now();
    let mut done = 0;
    while started.elapsed() < ROUND {
        let command = ResourceUpdateCommand {
            command_id: CommandId::new_v7(),
            operation_id: OperationId::new_v7(),
            resource_id: id.clone(),
            expected_version: version,
            changes: Changes {
                observed_state_patch: Some(json!({"counter": version})),
                ..Changes::default()
            },
            evidence: Vec::new(),
            uid: None,
            traceparent: None,
        };
        let outcome = catalog.update_resource(&command).await.expect("an outcome");
        assert_eq!(outcome.outcome, Outcome::Applied, "{outcome:?}");
        version = outcome.version.expect("a version");
        done += 1;
    }
    done
}

/// The same work in SQL: the command's record, the resource's new version, its change record.
const SCRIPT: &str = "\\set id :client_id\nBEGIN;\n\
    INSERT INTO bench_command (id, body) VALUES (gen_random_uuid(), repeat('x', 300));\n\
    UPDATE bench_resource SET version = version + 1, state = repeat('y', 600) WHERE id = :id;\n\
    INSERT INTO bench_change (resource, payload) VALUES (:id, repeat('z', 900));\nCOMMIT;\n";

async fn prepare(counter: &Counter) {
    counter
        .run(
            "CREATE TABLE IF NOT EXISTS bench_command (id uuid PRIMARY KEY, body text); \
             CREATE TABLE IF NOT EXISTS bench_resource (id int PRIMARY KEY, version bigint NOT NULL, state text); \
             CREATE TABLE IF NOT EXISTS bench_change (id bigserial PRIMARY KEY, resource int, payload text); \
             INSERT INTO bench_resource SELECT n, 1, '' FROM generate_series(0, 63) n ON CONFLICT DO NOTHING",
        )
        .await;
}

fn pgbench(deployment: &Deployment) -> f64 {
    let script = deployment.path().join("update.sql");
    std::fs::write(&script, SCRIPT).expect("own file");
    let told = &deployment.database;
    let text = |key: &str| told[key].as_str().expect("told").to_owned();
    let password = std::fs::read_to_string(text("password_file")).expect("own file");
    let output = Command::new(format!("{}/pgbench", text("programs")))
        .args([
            "-n",
            "-M",
            "prepared",
            "-c",
            &CLIENTS.to_string(),
            "-j",
            "2",
            "-T",
            &ROUND.as_secs().to_string(),
            "-f",
        ])
        .arg(&script)
        .args([
            "-h",
            &text("sockets"),
            "-p",
            &told["port"].to_string(),
            "-U",
            "postgres",
            "postgres",
        ])
        .env("PGPASSWORD", password.trim())
        .output()
        .expect("pgbench runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = said
        .lines()
        .find_map(|line| line.strip_prefix("tps = "))
        .unwrap_or_else(|| panic!("pgbench said {said}"));
    line.split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .expect("a rate")
}

/// The figure.
pub async fn run(deployment: &Deployment, counter: &Counter, table: &mut Table) {
    prepare(counter).await;
    let catalog = service(deployment);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let done: u64 = join_all((0..CLIENTS).map(|index| client(deployment, &catalog, index)))
            .await
            .iter()
            .sum();
        ours.push(done as f64 / started.elapsed().as_secs_f64());
        theirs.push(pgbench(deployment));
    }
    table.add(Row {
        what: "resource updates a second, 16 clients",
        ours,
        peer: "pgbench, same work in SQL",
        theirs,
        unit: "/s",
        target: Target::Told,
        note: String::new(),
    });
}
