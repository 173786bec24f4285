//! (d): resource updates a second over HTTP, beside the same SQL under pgbench.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use contracts::{Changes, LifecycleStatus, ResourceUpdateCommand};
use e2e::{Deployment, Role};
use futures::future::join_all;
use identity::{Minter, PrivateKey, RotatingToken};
use kernel::ResourceId;
use kernel::id::{CommandId, OperationId, OrganizationId};
use resource_catalog_api::{ApplyResource, Client as Catalog, Outcome};
use serde_json::json;

use crate::ROUNDS;
use crate::table::{Row, Table, Target};

const CLIENTS: usize = 16;
const ROUND: Duration = Duration::from_secs(3);

/// The resources that the peer updates, by number.
const PEERS: &str = "node/bench-sql-";

/// A resource that can be updated, and its version.
pub async fn resource(deployment: &Deployment, id: &str) -> (ResourceId, i64) {
    let id: ResourceId = id.parse().expect("an id");
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
    let data = deployment.data();
    let key = PrivateKey::load(&data.join("keys/control-plane.pem")).expect("the key of the service");
    let organization = std::fs::read_to_string(data.join("organization")).expect("own file");
    let organization = OrganizationId(organization.trim().parse().expect("an id"));
    let token = Minter::new(key, "control-plane").mint(
        "service:control-plane",
        organization,
        [identity::Role::Service],
        TimeDelta::minutes(10),
        Utc::now(),
    );
    let tokens = RotatingToken::new(token.expect("a token"));
    Catalog::new(deployment.address(Role::ResourceCatalog), Some(Arc::new(tokens))).expect("an address")
}

fn command(id: &ResourceId, version: i64) -> ResourceUpdateCommand {
    ResourceUpdateCommand {
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
    }
}

async fn client(deployment: &Deployment, catalog: &Catalog, index: usize) -> u64 {
    let (id, mut version) = resource(deployment, &format!("node/bench-{index}")).await;
    let started = Instant::now();
    let mut done = 0;
    while started.elapsed() < ROUND {
        let outcome = catalog
            .update_resource(&command(&id, version))
            .await
            .expect("an outcome");
        assert_eq!(outcome.outcome, Outcome::Applied, "{outcome:?}");
        version = outcome.version.expect("a version");
        done += 1;
    }
    done
}

/// Columns that an update reads of a resource.
const COLUMNS: &str = "organization_id, resource_id, uid, resource_type, type_ancestors, environment, labels, \
    annotations, lifecycle_status, health_status, health_reasons, health_observed_at, desired_state, observed_state, \
    connection, version, desired_generation, provided, edges, created_at, updated_at";

/// The catalog's own statements for one command, in the same three round trips, on its own tables, with an
/// outcome and a change record as it wrote them itself. What only a program can do is left out: reading JSON,
/// the rules, the answer. (A random id is made in a SELECT of its own: a volatile call in a condition bars the index.)
fn script(sample: &Sample) -> String {
    let Sample {
        organization,
        outcome,
        record,
    } = sample;
    let (outcome, record, actor) = (literal(outcome), literal(record), literal("service:control-plane"));
    let this = format!("organization_id = '{organization}' AND resource_id = '{PEERS}' || :client_id::text");
    format!(
        "\\startpipeline\n\
         BEGIN;\n\
         SELECT set_config('app.organization_id', '{organization}', true);\n\
         SELECT {COLUMNS} FROM resources WHERE {this} ORDER BY resource_id FOR NO KEY UPDATE;\n\
         SELECT command_id, body_digest, outcome FROM resource_update_commands \
         WHERE organization_id = '{organization}' AND command_id = ANY (ARRAY (SELECT gen_random_uuid()));\n\
         SELECT revision FROM registries WHERE organization_id = '{organization}';\n\
         \\endpipeline\n\
         \\startpipeline\n\
         UPDATE resources SET lifecycle_status = lifecycle_status, health_status = health_status, \
         health_reasons = health_reasons, health_observed_at = health_observed_at, \
         observed_state = jsonb_build_object('counter', version), provided = provided, version = version + 1, \
         updated_at = now() WHERE {this};\n\
         INSERT INTO resource_versions (organization_id, uid, version, changed, actor, command_id, occurred_at) \
         SELECT organization_id, uid, version, ARRAY['observed_state.counter'], {actor}, gen_random_uuid(), \
         updated_at FROM resources WHERE {this};\n\
         INSERT INTO outbox (organization_id, key, version, kind, event_id, payload, occurred_at, traceparent) \
         SELECT organization_id, resource_id, version, 'resource.change', gen_random_uuid(), {record}, updated_at, \
         NULL FROM resources WHERE {this};\n\
         INSERT INTO resource_update_commands (organization_id, command_id, body_digest, outcome, decided_at) \
         VALUES ('{organization}', gen_random_uuid(), sha256('command'), {outcome}::jsonb, now()) ON CONFLICT DO NOTHING;\n\
         \\endpipeline\n\
         COMMIT;\n"
    )
}

/// A text in SQL that pgbench finds none of its variables in: to it, a word behind a colon is one.
fn literal(text: &str) -> String {
    format!("('{}')", text.replace('\'', "''").replace(':', "' || chr(58) || '"))
}

/// What the catalog wrote for one update.
struct Sample {
    organization: String,
    outcome: String,
    record: String,
}

impl Sample {
    /// Makes the peer's resources and one update, and reads what was written.
    async fn take(deployment: &Deployment, catalog: &Catalog) -> Self {
        for index in 0..CLIENTS {
            resource(deployment, &format!("{PEERS}{index}")).await;
        }
        let (id, version) = resource(deployment, "node/bench-sample").await;
        let command = command(&id, version);
        catalog.update_resource(&command).await.expect("an outcome");
        let statement = format!(
            "SELECT organization_id::text, outcome::text, (SELECT payload FROM \
             (SELECT key, version, payload FROM feed UNION ALL SELECT key, version, payload FROM outbox) AS records \
             WHERE key = '{id}' ORDER BY version DESC LIMIT 1) \
             FROM resource_update_commands WHERE command_id = '{}'",
            command.command_id
        );
        let rows = deployment.rows("resource_catalog", &statement).await;
        let mut columns = rows.into_iter().next().expect("the command was kept").into_iter();
        let mut next = || columns.next().flatten().expect("a value");
        Self {
            organization: next(),
            outcome: next(),
            record: next(),
        }
    }
}

/// As the role that answers the catalog's requests, whom row-level security binds.
fn pgbench(deployment: &Deployment, script: &Path) -> f64 {
    let told = &deployment.database;
    let text = |key: &str| told[key].as_str().expect("told").to_owned();
    let password = std::fs::read_to_string(text("password_file")).expect("own file");
    let (clients, seconds) = (CLIENTS.to_string(), ROUND.as_secs().to_string());
    // Where the server's program is found there may be links to it alone.
    let server = Path::new(&text("programs")).join("postgres");
    let server = server.canonicalize().expect("the server runs");
    let output = Command::new(server.with_file_name("pgbench"))
        .args(["-n", "-M", "prepared", "-j", "2", "-c", &clients, "-T", &seconds, "-f"])
        .arg(script)
        .args(["-h", &text("sockets"), "-p", &told["port"].to_string()])
        .args(["-U", "postgres", "resource_catalog"])
        .env("PGPASSWORD", password.trim())
        .env("PGOPTIONS", "-c role=resource_catalog_api")
        .output()
        .expect("pgbench runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let rate = said.lines().find_map(|line| line.strip_prefix("tps = "));
    rate.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or_else(|| panic!("pgbench said {said}{}", String::from_utf8_lossy(&output.stderr)))
}

/// The figure.
pub async fn run(deployment: &Deployment, table: &mut Table) {
    let catalog = service(deployment);
    let file = deployment.path().join("update.sql");
    std::fs::write(&file, script(&Sample::take(deployment, &catalog).await)).expect("own file");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let done: u64 = join_all((0..CLIENTS).map(|index| client(deployment, &catalog, index)))
            .await
            .iter()
            .sum();
        ours.push(done as f64 / started.elapsed().as_secs_f64());
        theirs.push(pgbench(deployment, &file));
    }
    table.add(Row {
        what: "resource updates a second, 16 clients",
        ours,
        peer: "pgbench, the same SQL",
        theirs,
        unit: "/s",
        target: Target::Told,
        note: String::new(),
    });
}
