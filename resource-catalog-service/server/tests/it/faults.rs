//! What may go wrong around the catalog, and what must hold afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use contracts::ResourceUpdateCommand;
use proptest::prelude::{Just, Strategy, any};
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use resource_catalog_api::{Client, ListResourcesQuery, UpdateOutcome};
use serde_json::{Value, json};

use crate::harness::{Catalog, command, id, node, observing, providing, put};

/// Sends a command until it has an outcome, as control-plane does: the same command, over and over.
async fn insist(control: &Client, command: &ResourceUpdateCommand) -> UpdateOutcome {
    loop {
        match control.update_resource(command).await {
            Ok(outcome) => return outcome,
            Err(error) => assert!(error.status().is_none_or(|s| s == 500 || s == 503), "{error}"),
        }
        tokio::task::yield_now().await;
    }
}

/// Every connection to the database is cut again and again while commands come in. What was answered stands, nothing is
/// applied twice, and the feed has each version once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invariants_5_6_and_8_hold_when_every_connection_is_reset() {
    const RESOURCES: usize = 4;
    const ROUNDS: i64 = 10;
    let catalog = Catalog::start().await;
    for n in 0..RESOURCES {
        put(&catalog.operator(), &format!("node/n{n}"), &node()).await;
    }
    let database = catalog.database.open_superuser();
    let over = Arc::new(AtomicBool::new(false));
    let cutter = {
        let (database, over) = (database.clone(), Arc::clone(&over));
        tokio::spawn(async move {
            let mut cuts = 0;
            while !over.load(Ordering::SeqCst) || cuts < 3 {
                let cut: i64 = sqlx::query_scalar(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                     WHERE datname = current_database() AND pid <> pg_backend_pid()
                         AND usename IN ('resource_catalog_api', 'resource_catalog_worker')",
                )
                .fetch_one(database.sqlx())
                .await
                .unwrap();
                cuts += cut;
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        })
    };
    let writers = (0..RESOURCES).map(|n| {
        let control = catalog.control();
        async move {
            for version in 1..=ROUNDS {
                let sent = command(&format!("node/n{n}"), version, observing(json!({"round": version})));
                let outcome = insist(&control, &sent).await;
                assert_eq!(outcome.version, Some(version + 1), "{outcome:?}");
            }
        }
    });
    futures::future::join_all(writers).await;
    over.store(true, Ordering::SeqCst);
    cutter.await.unwrap();
    let count = RESOURCES * (usize::try_from(ROUNDS).unwrap() + 2);
    let mut versions: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    let events = loop_until(&catalog, count).await;
    for event in events.iter().filter(|e| e["event_type"] == "resource.updated") {
        let resource = event["resource_id"].as_str().unwrap().to_owned();
        versions
            .entry(resource)
            .or_default()
            .push(event["version"].as_i64().unwrap());
    }
    let gapless: Vec<i64> = (1..=ROUNDS + 1).collect();
    assert_eq!(versions.len(), RESOURCES);
    assert!(versions.values().all(|v| *v == gapless), "{versions:?}");
}

/// The whole feed once it has `count` events, though connections that were cut may fail a read.
async fn loop_until(catalog: &Catalog, count: usize) -> Vec<Value> {
    let client = client_kit(catalog);
    loop {
        let path = "/v1/feed?after=0&limit=1000&wait_seconds=1";
        if let Ok(page) = client.get(path).json::<Value>().await
            && page["events"].as_array().is_some_and(|events| events.len() >= count)
        {
            return page["events"].as_array().unwrap().clone();
        }
        tokio::task::yield_now().await;
    }
}

fn client_kit(catalog: &Catalog) -> client_kit::Client {
    catalog.kit(&[identity::Role::Operator, identity::Role::Service])
}

/// A client that gives up midway and asks again gets one application, whatever moment it gave up at.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invariant_6_a_command_cut_off_and_repeated_is_applied_once() {
    let catalog = Catalog::start().await;
    put(&catalog.operator(), "node/web-1", &node()).await;
    let control = catalog.control();
    for version in 1..=20_i64 {
        let sent = command("node/web-1", version, observing(json!({"round": version})));
        let patience = std::time::Duration::from_micros(u64::try_from(version).unwrap() * 400);
        let _ = tokio::time::timeout(patience, control.update_resource(&sent)).await;
        let outcome = insist(&control, &sent).await;
        assert_eq!(outcome.version, Some(version + 1), "{outcome:?}");
    }
    assert_eq!(catalog.events(22).await.len(), 22);
}

fn strange() -> impl Strategy<Value = Value> {
    proptest::prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|n| json!(n)),
        ".{0,12}".prop_map(Value::from),
        Just(json!("node/web-1")),
        Just(json!([])),
        Just(json!([{}, null])),
        Just(json!({"a": {"b": [1, "x"]}})),
        Just(json!("x".repeat(70_000))),
    ]
}

fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(fields) => fields.iter().for_each(|(k, v)| places(v, &format!("{at}/{k}"), found)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(n, v)| places(v, &format!("{at}/{n}"), found)),
        _ => {}
    }
}

/// Bodies that are right but for one strange value: always an answer, never a fault inside, every refusal a problem.
#[tokio::test]
async fn strange_values_anywhere_in_a_body_never_break_the_service() {
    let catalog = Catalog::start().await;
    catalog.define().await;
    put(&catalog.operator(), "node/web-1", &node()).await;
    let update = serde_json::to_value(providing("node/web-1", 1, "web.http")).unwrap();
    let apply = serde_json::to_value(node()).unwrap();
    let validation = json!({
        "operation_id": update["operation_id"],
        "set_finalizers": true,
        "resources": [{"resource_id": "node/web-1", "expected_version": 1, "lifecycle_in": ["running"],
            "capabilities": [{"capability": "os.linux", "version": ">=1"}]}]
    });
    let resource_type = json!({
        "parent": "compute.node", "description": "x", "id_prefix": "node",
        "desired_state_schema": {"properties": {"a": {"type": "string", "pattern": "^a+$"}}},
        "lifecycle_transitions": [{"from": "running", "to": ["failed"]}],
        "edges": [{"edge_type": "part_of", "targets": ["topology.rack"], "max_targets": 1}]
    });
    let targets = [
        ("POST", "/v1/resource-updates", update),
        ("PUT", "/v1/resources/node/web-1", apply),
        ("POST", "/v1/validations", validation),
        ("PUT", "/v1/resource-types/compute.node.x", resource_type),
    ];
    let client = client_kit(&catalog);
    let mut runner = TestRunner::deterministic();
    for (method, path, body) in targets {
        let mut all = Vec::new();
        places(&body, "", &mut all);
        for place in &all {
            for _ in 0..4 {
                let mut sent = body.clone();
                *sent.pointer_mut(place).unwrap() = strange().new_tree(&mut runner).unwrap().current();
                let method = method.parse().unwrap();
                let answer = client.call(method, path).body(&sent).json::<Value>().await;
                if let Err(error) = answer {
                    let problem = error.problem().unwrap_or_else(|| panic!("{path} {place}: {error:?}"));
                    assert!((400..500).contains(&problem.status), "{path} {place} {sent}: {problem}");
                }
            }
        }
    }
    let still = catalog
        .operator()
        .resources(&ListResourcesQuery::default())
        .await
        .unwrap();
    assert_eq!(still.items[0].resource_id, id("node/web-1"));
}
