//! (c): what the platform adds to `ansible-playbook`: by the runner's own stamps, and as a paired total.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use chrono::{DateTime, Utc};
use contracts::ExecutionStatus;
use control_plane_api::{CreateOperation, ListNodeRunsQuery, PlanRequest};
use e2e::{Deployment, Scenario, World};
use futures::StreamExt as _;

use crate::table::{Row, Table, Target, median};

const ROUNDS: usize = 20;
const PLAYBOOK: &str = "- hosts: all\n  gather_facts: false\n  tasks:\n    - ansible.builtin.ping:\n";
const TEMPLATE: &str = r#"name: main
title: Ping
description: Pings one host.
requirements:
  host: {resource_type: compute.node, count: {min: 1, max: 1}, capabilities: [os.linux], connection: true, claim: exclusive}
nodes:
  - id: ping
    title: Ping
    kind: job
    job:
      type: ansible
      targets: host
      parameters: {playbook: ping.yml}
      secrets: [{secret_ref: "vault://ssh/hosts"}]
      timeout_seconds: 60
      idempotent: true
"#;

/// What the platform's own configuration says too, so that both do the same work. Each run makes a
/// connection of its own, as a job does.
fn configuration(control_paths: &str) -> String {
    format!(
        "[defaults]\ninterpreter_python = auto_silent\nretry_files_enabled = False\nnocows = True\nnocolor = True\n\
         [ssh_connection]\npipelining = True\nssh_args = -F none -o ControlMaster=auto -o ControlPersist=60s\n\
         control_path = {control_paths}/%%C\n"
    )
}

/// Milliseconds of the program alone.
fn bare(world: &World, directory: &Path, round: usize) -> f64 {
    let host = &world.hosts.hosts[0];
    let inventory = format!(
        "{} ansible_host={} ansible_port={} ansible_user={} ansible_ssh_private_key_file={} ansible_ssh_common_args='-o UserKnownHostsFile={}'\n",
        host.name,
        host.address,
        host.port,
        host.user,
        world.hosts.private_key.display(),
        world.hosts.known_hosts.display()
    );
    std::fs::write(directory.join("inventory"), inventory).expect("own file");
    std::fs::write(directory.join("ping.yml"), PLAYBOOK).expect("own file");
    let control_paths = format!("/tmp/platform-bench-{}-{round}", std::process::id());
    std::fs::create_dir_all(&control_paths).expect("own directory");
    std::fs::write(directory.join("ansible.cfg"), configuration(&control_paths)).expect("own file");
    let program = std::env::var_os("PLATFORM_ANSIBLE_DIR").map_or_else(
        || "ansible-playbook".into(),
        |directory| Path::new(&directory).join("ansible-playbook"),
    );
    let started = Instant::now();
    let output = Command::new(program)
        .args(["-i", "inventory", "ping.yml"])
        .current_dir(directory)
        .env("ANSIBLE_CONFIG", directory.join("ansible.cfg"))
        .output()
        .expect("ansible runs");
    let took = started.elapsed().as_secs_f64() * 1e3;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    drop(std::fs::remove_dir_all(control_paths));
    took
}

/// Milliseconds of one operation with one ansible job.
struct Ours {
    /// From the request to the end of the live view.
    total: f64,
    /// By the runner: from the lease to the end of the work.
    runner: f64,
    /// Of that, before the job's process was there.
    before: f64,
}

fn request() -> PlanRequest {
    PlanRequest {
        pack: "ping".into(),
        pack_version: None,
        template: "main".into(),
        environment: "test".into(),
        parameters: Default::default(),
    }
}

async fn ours(deployment: &Deployment) -> Ours {
    let create = CreateOperation {
        plan_id: None,
        expected_digest: None,
        plan: Some(request()),
        on_overlap: Default::default(),
        reason: String::new(),
        labels: Default::default(),
    };
    let started = Instant::now();
    let id = deployment
        .control
        .create_operation(&create, &uuid::Uuid::now_v7().to_string())
        .await
        .expect("an operation")
        .summary
        .id;
    let _: Vec<_> = deployment.control.watch(id, 0).collect().await;
    let total = started.elapsed().as_secs_f64() * 1e3;
    let runs = deployment
        .control
        .node_runs(id, &ListNodeRunsQuery::default())
        .await
        .expect("node runs");
    let attempt = runs.items[0].attempts.last().expect("an attempt").attempt_id;
    let attempt = deployment.execution.attempt(attempt).await.expect("the attempt");
    let result = attempt.result.expect("it has ended");
    assert_eq!(result.status, ExecutionStatus::Succeeded, "{result:#?}");
    let timing = &result.outputs.expect("the runner tells its stamps")["timing"];
    let stamp =
        |name: &str| -> DateTime<Utc> { timing[name].as_str().and_then(|at| at.parse().ok()).expect("a stamp") };
    let since = |name| (stamp(name) - stamp("received_at")).as_seconds_f64() * 1e3;
    Ours {
        total,
        runner: since("work_ended_at"),
        before: since("begun_at"),
    }
}

/// Both figures.
pub async fn run(deployment: &Deployment, table: &mut Table) {
    let world = World::start(deployment, 1).await;
    let scenario = Scenario::with_content("ping", TEMPLATE, &[("ping.yml", PLAYBOOK)]);
    deployment
        .control
        .push_pack(scenario.archive().into(), "ping")
        .await
        .expect("a valid pack");
    let id = World::resource(&world.hosts.hosts[0]);
    let version = deployment.catalog.resource(&id).await.expect("the resource").version;
    let known = deployment
        .control
        .preview(&request(), Some(&format!("{id}@{version}")))
        .await;
    known.expect("the copy of the catalog knows the host");
    let directory = deployment.path().join("bare");
    std::fs::create_dir_all(&directory).expect("own directory");
    ours(deployment).await;
    bare(&world, &directory, 0);
    let (mut mine, mut bares) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        // Whoever comes second finds warmer caches: they take turns.
        if round % 2 == 0 {
            mine.push(ours(deployment).await);
            bares.push(bare(&world, &directory, round));
        } else {
            bares.push(bare(&world, &directory, round));
            mine.push(ours(deployment).await);
        }
    }
    let column = |of: fn(&Ours) -> f64| mine.iter().map(of).collect::<Vec<f64>>();
    for (what, ours, note) in [
        (
            "ansible ping, by the runner's stamps",
            column(|one| one.runner),
            format!(
                "from the lease to the start of the job's process: {:.0} ms",
                median(&column(|one| one.before))
            ),
        ),
        ("ansible ping, request to end", column(|one| one.total), String::new()),
    ] {
        table.add(Row {
            what,
            ours,
            peer: "bare ansible-playbook",
            theirs: bares.clone(),
            unit: "ms",
            target: Target::More(15.0),
            note,
        });
    }
}
