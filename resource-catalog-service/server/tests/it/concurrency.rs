use std::collections::BTreeMap;

use resource_catalog_api::Outcome;
use serde_json::json;

use crate::harness::{Catalog, command, id, node, observing, put};

/// Many clients race for each version of one resource, through two processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_one_of_many_wins_each_version_and_versions_are_gapless() {
    const ROUNDS: i64 = 12;
    const CLIENTS: usize = 16;
    let catalog = Catalog::start().await;
    let twin = catalog.twin().await;
    let first = put(&catalog.operator(), "node/web-1", &node()).await;
    for version in 1..=ROUNDS {
        let racers = (0..CLIENTS).map(|n| {
            let control = if n % 2 == 0 { catalog.control() } else { twin.control() };
            async move {
                let sent = command("node/web-1", version, observing(json!({"winner": n, "round": version})));
                control.update_resource(&sent).await.unwrap()
            }
        });
        let outcomes = futures::future::join_all(racers).await;
        let applied: Vec<_> = outcomes.iter().filter(|o| o.outcome == Outcome::Applied).collect();
        assert_eq!(applied.len(), 1, "version {version}");
        assert_eq!(applied[0].version, Some(version + 1));
        assert!(
            outcomes
                .iter()
                .all(|o| o.outcome == Outcome::Applied || o.outcome == Outcome::Conflict)
        );
    }
    let events = catalog.events(usize::try_from(ROUNDS).unwrap() + 2).await;
    let versions: Vec<i64> = events.iter().map(|e| e.version).collect();
    let expected: Vec<i64> = [1].into_iter().chain(1..=ROUNDS + 1).collect();
    assert_eq!(
        versions, expected,
        "in order, one record each (the first yields two events)"
    );
    let database = catalog.database.open_superuser();
    let recorded: Vec<i64> =
        sqlx::query_scalar("SELECT version FROM resource_versions WHERE uid = $1 ORDER BY version")
            .bind(first.uid.as_uuid())
            .fetch_all(database.sqlx())
            .await
            .unwrap();
    assert_eq!(recorded, (1..=ROUNDS + 1).collect::<Vec<_>>());
}

/// One command, sent by many at once, is applied once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invariant_6_a_command_repeated_at_the_same_moment_is_applied_once() {
    let catalog = Catalog::start().await;
    let twin = catalog.twin().await;
    put(&catalog.operator(), "node/web-1", &node()).await;
    let sent = command("node/web-1", 1, observing(json!({"a": 1})));
    let senders = (0..24).map(|n| {
        let control = if n % 2 == 0 { catalog.control() } else { twin.control() };
        let sent = sent.clone();
        async move { control.update_resource(&sent).await.unwrap() }
    });
    let outcomes = futures::future::join_all(senders).await;
    assert_eq!(outcomes.iter().filter(|o| o.outcome == Outcome::Applied).count(), 1);
    assert!(
        outcomes
            .iter()
            .all(|o| o.settled() == Outcome::Applied && o.version == Some(2))
    );
    assert_eq!(catalog.operator().resource(&id("node/web-1")).await.unwrap().version, 2);
}

/// Many resources, many writers, mixed kinds of write: the feed has each version of each once, in order, and what it
/// ends with is what the catalog has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invariant_5_a_projection_of_the_feed_equals_the_catalog_once_events_stop() {
    const RESOURCES: usize = 6;
    let catalog = Catalog::start().await;
    let twin = catalog.twin().await;
    let writers = (0..24).map(|n| {
        let (operator, control) = (catalog.operator(), twin.control());
        async move {
            let name = format!("node/n{}", n % RESOURCES);
            let mut asked = node();
            asked.labels.insert("writer".into(), format!("w{n}"));
            let mut version = put(&operator, &name, &asked).await.version;
            for round in 0..4 {
                let key = format!("w{n}");
                let sent = command(&name, version, observing(json!({ key: round })));
                let outcome = control.update_resource(&sent).await.unwrap();
                version = match outcome.conflict {
                    Some(conflict) => conflict.current_version,
                    None => outcome.version.unwrap(),
                };
            }
        }
    });
    futures::future::join_all(writers).await;
    let operator = catalog.operator();
    let listed = operator
        .resources(&resource_catalog_api::ListResourcesQuery::default())
        .await
        .unwrap();
    let total: i64 = listed.items.iter().map(|r| r.version).sum();
    let extra = RESOURCES; // A creation yields two events.
    let events = catalog.events(usize::try_from(total).unwrap() + extra).await;
    assert_eq!(events.len(), usize::try_from(total).unwrap() + extra);
    let mut projection = BTreeMap::new();
    let mut last: BTreeMap<_, i64> = BTreeMap::new();
    for event in events {
        let seen = last.entry(event.resource_id.clone()).or_default();
        assert!(
            event.version == *seen || event.version == *seen + 1,
            "{}",
            event.resource_id
        );
        *seen = event.version;
        projection.insert(event.resource_id, event.payload);
    }
    for resource in listed.items {
        let projected: resource_catalog_api::Resource =
            serde_json::from_value(serde_json::Value::Object(projection[&resource.resource_id].clone())).unwrap();
        assert_eq!(projected, resource);
    }
}
