//! (a) and (b): durable no-op nodes through all three services, beside DBOS on the same PostgreSQL.

use std::fmt::Write as _;
use std::time::Instant;

use control_plane_api::{CreateOperation, OperationState, PlanRequest};
use e2e::{Deployment, Scenario};
use futures::StreamExt as _;
use futures::future::join_all;
use kernel::id::OperationId;

use crate::commits::Counter;
use crate::dbos::Dbos;
use crate::table::{Row, Table, Target, median};
use crate::updates;
use crate::{OPERATIONS, ROUNDS, SIZE};

fn template(nodes: usize, chained: bool) -> String {
    let mut text = String::from(
        "name: main\ntitle: No-op nodes\ndescription: Nodes that do nothing.\nrequirements:\n  host: {resource_type: compute.node, count: {min: 1, max: 1}, claim: read}\nnodes:\n",
    );
    for node in 0..nodes {
        let needs = if chained && node > 0 {
            format!("    needs: [n{}]\n", node - 1)
        } else {
            String::new()
        };
        let _ = write!(
            text,
            "  - id: n{node}\n    title: Nothing\n    kind: job\n{needs}    job:\n      type: verification\n      targets: host\n      parameters:\n        checks:\n          - \
             {{name: same, type: value_check, capability: bench.noop, value: 1, equals: 1}}\n      output: {{evidence: [same]}}\n      timeout_seconds: 60\n      idempotent: true\n"
        );
    }
    text
}

async fn publish(deployment: &Deployment, name: &str, nodes: usize, chained: bool) {
    let scenario = Scenario::new(name, &template(nodes, chained));
    deployment
        .control
        .push_pack(scenario.archive().into(), name)
        .await
        .expect("a valid pack");
}

fn request(pack: &str) -> PlanRequest {
    PlanRequest {
        pack: pack.into(),
        pack_version: None,
        template: "main".into(),
        environment: "bench".into(),
        parameters: Default::default(),
    }
}

async fn start(deployment: &Deployment, pack: &str) -> OperationId {
    let create = CreateOperation {
        plan_id: None,
        expected_digest: None,
        plan: Some(request(pack)),
        on_overlap: Default::default(),
        reason: String::new(),
        labels: Default::default(),
    };
    let key = uuid::Uuid::now_v7().to_string();
    deployment
        .control
        .create_operation(&create, &key)
        .await
        .expect("an operation")
        .summary
        .id
}

/// Follows the live view to its end.
async fn ended(deployment: &Deployment, id: OperationId) {
    let events: Vec<_> = deployment.control.watch(id, 0).collect().await;
    assert!(events.iter().all(Result::is_ok), "the live view holds");
}

/// Seconds from the first request to the end of the last live view.
async fn ours(deployment: &Deployment, pack: &str, operations: usize) -> f64 {
    let started = Instant::now();
    let one = async || {
        let id = start(deployment, pack).await;
        ended(deployment, id).await;
        id
    };
    let ids = join_all((0..operations).map(|_| one())).await;
    let seconds = started.elapsed().as_secs_f64();
    for id in ids {
        let operation = deployment.control.operation(id).await.expect("an operation");
        assert_eq!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
    }
    seconds
}

/// All three figures.
pub async fn run(deployment: &Deployment, counter: &Counter, table: &mut Table) {
    for (name, nodes, chained) in [("chain", SIZE, true), ("fan-out", SIZE, false), ("one", 1, false)] {
        publish(deployment, name, nodes, chained).await;
    }
    let (id, version) = updates::resource(deployment, "node/bench-0").await;
    let known = deployment
        .control
        .preview(&request("one"), Some(&format!("{id}@{version}")))
        .await;
    known.expect("the copy of the catalog knows the resource");
    counter.run("CREATE DATABASE peer").await;
    let mut dbos = Dbos::start(&counter.url.replace("/postgres?", "/peer?"));
    for (figure, pack, word, operations, target) in [
        ("chain of 40 no-op nodes", "chain", "chain", 1, Target::Ratio(2.0)),
        ("fan-out of 40 no-op nodes", "fan-out", "fan_out", 1, Target::Ratio(2.0)),
        (
            "100 one-node operations at once",
            "one",
            "many",
            OPERATIONS,
            Target::Ours(1.0),
        ),
    ] {
        // One round of each to warm up.
        ours(deployment, pack, operations).await;
        dbos.round(word);
        let (mut mine, mut theirs, mut syncs, mut peer_syncs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let nodes = if operations == 1 { SIZE } else { operations } as f64;
        for _ in 0..ROUNDS {
            let before = counter.syncs().await;
            mine.push(ours(deployment, pack, operations).await);
            let between = counter.syncs().await;
            theirs.push(dbos.round(word));
            let after = counter.syncs().await;
            syncs.push((between - before) / nodes);
            peer_syncs.push((after - between) / nodes);
        }
        let note = format!(
            "synced commits a node: {:.1}, the peer's {:.1}",
            median(&syncs),
            median(&peer_syncs)
        );
        table.add(Row {
            what: figure,
            ours: mine,
            peer: "DBOS",
            theirs,
            unit: "s",
            target,
            note,
        });
    }
}
