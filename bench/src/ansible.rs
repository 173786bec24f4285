//! (c): what the platform adds to `ansible-playbook`: by the runner's own stamps, and as a paired total.

use std::process::Command;
use std::time::Instant;

use control_plane_api::{CreateOperation, ListNodeRunsQuery, PlanRequest};
use e2e::{Deployment, Scenario, World};
use futures::StreamExt as _;

use crate::median;
use crate::table::{Row, Table};

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

fn bare(world: &World, directory: &std::path::Path) -> f64 {
    let host = &world.hosts.hosts[0];
    let inventory = format!(
        "{} ansible_host={} ansible_port={} ansible_user={} ansible_ssh_private_key_file={} ansible_ssh_common_args='-F none -o UserKnownHostsFile={}' ansible_python_interpreter=/usr/bin/python3\n",
        host.name,
        host.address,
        host.port,
        host.user,
        world.hosts.private_key.display(),
        world.hosts.known_hosts.display()
    );
    std::fs::write(directory.join("inventory"), inventory).expect("own file");
    std::fs::write(directory.join("ping.yml"), PLAYBOOK).expect("own file");
    let program = std::env::var_os("PLATFORM_ANSIBLE_DIR").map_or_else(
        || "ansible-playbook".into(),
        |d| std::path::Path::new(&d).join("ansible-playbook"),
    );
    let started = Instant::now();
    let output = Command::new(program)
        .args(["-i", "inventory", "ping.yml"])
        .current_dir(directory)
        .env("ANSIBLE_NOCOLOR", "1")
        .output()
        .expect("ansible runs");
    let took = started.elapsed().as_secs_f64();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    took
}

async fn ours(deployment: &Deployment) -> (f64, f64) {
    let plan = PlanRequest {
        pack: "ping".into(),
        pack_version: None,
        template: "main".into(),
        environment: "test".into(),
        parameters: Default::default(),
    };
    let create = CreateOperation {
        plan_id: None,
        expected_digest: None,
        plan: Some(plan),
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
    let total = started.elapsed().as_secs_f64();
    let runs = deployment
        .control
        .node_runs(id, &ListNodeRunsQuery::default())
        .await
        .expect("node runs");
    let attempt = runs.items[0].attempts.last().expect("an attempt");
    let span = (attempt.finished_at.expect("finished") - attempt.started_at.expect("started"))
        .num_microseconds()
        .expect("short");
    (total, span as f64 / 1e6)
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
    let directory = deployment.path().join("bare");
    std::fs::create_dir_all(&directory).expect("own directory");
    ours(deployment).await;
    bare(&world, &directory);
    let (mut totals, mut spans, mut bares) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (total, span) = ours(deployment).await;
        totals.push(total);
        spans.push(span);
        bares.push(bare(&world, &directory));
    }
    let paired: Vec<f64> = totals
        .iter()
        .zip(&bares)
        .map(|(ours, bare)| (ours - bare) * 1e3)
        .collect();
    let stamped: Vec<f64> = spans
        .iter()
        .zip(&bares)
        .map(|(ours, bare)| (ours - bare) * 1e3)
        .collect();
    let note = format!(
        "paired difference {:.0} ms in all, {:.0} ms by the runner's stamps",
        median(&paired),
        median(&stamped)
    );
    table.add(Row {
        what: "ansible ping, request to end",
        ours: median(&totals) * 1e3,
        peer: "bare ansible-playbook",
        theirs: median(&bares) * 1e3,
        unit: "ms",
        target: "at most 15 ms more",
        note,
    });
}
