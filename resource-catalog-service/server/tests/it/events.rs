use std::collections::BTreeSet;

use contracts::CatalogProjectionEvent;
use futures::StreamExt as _;
use resource_catalog_api::{Client, FeedQuery, ListResourcesQuery, SnapshotLine, WatchQuery};
use serde_json::json;

use crate::harness::{Catalog, command, node, observing, put};
use crate::listing::observe;

async fn snapshot(client: &Client) -> Vec<SnapshotLine> {
    let lines = client.snapshot().await.unwrap();
    lines.map(Result::unwrap).collect().await
}

async fn next(
    events: &mut (impl futures::Stream<Item = Result<CatalogProjectionEvent, resource_catalog_api::ClientError>> + Unpin),
) -> CatalogProjectionEvent {
    events.next().await.unwrap().unwrap()
}

#[tokio::test]
async fn the_feed_is_read_in_pages_without_gap_or_repeat() {
    let catalog = Catalog::start().await;
    let operator = catalog.operator();
    for n in 0..7 {
        put(&operator, &format!("node/n{n}"), &node()).await;
    }
    let whole = catalog.events(14).await;
    let mut paged = Vec::new();
    let mut after = 0;
    loop {
        let query = FeedQuery {
            after,
            limit: Some(3),
            wait_seconds: None,
        };
        let page = operator.feed(&query).await.unwrap();
        if page.events.is_empty() {
            assert_eq!((page.next_after, page.head), (7, 7));
            break;
        }
        after = page.next_after;
        paged.extend(page.events);
    }
    assert_eq!(paged, whole);
    let ids: BTreeSet<_> = whole.iter().map(|e| e.event_id).collect();
    assert_eq!(ids.len(), whole.len());
}

#[tokio::test]
async fn a_place_that_the_feed_does_not_have_is_410_revision_gone() {
    let catalog = Catalog::start().await;
    let operator = catalog.operator();
    for n in 0..3 {
        put(&operator, &format!("node/n{n}"), &node()).await;
    }
    catalog.events(6).await;
    let query = |after| FeedQuery {
        after,
        limit: None,
        wait_seconds: None,
    };
    let ahead = operator.feed(&query(99)).await.unwrap_err();
    assert_eq!((ahead.status(), ahead.code()), (Some(410), Some("revision_gone")));
    let database = catalog.database.open_superuser();
    sqlx::raw_sql("DELETE FROM feed WHERE revision <= 2; UPDATE feed_state SET floor = 2")
        .execute(database.sqlx())
        .await
        .unwrap();
    let behind = operator.feed(&query(1)).await.unwrap_err();
    assert_eq!((behind.status(), behind.code()), (Some(410), Some("revision_gone")));
    let watching = operator.watch(&WatchQuery::default(), Some("1".into()));
    futures::pin_mut!(watching);
    let refused = watching.next().await.unwrap().unwrap_err();
    assert_eq!(refused.code(), Some("revision_gone"));
    assert_eq!(operator.feed(&query(2)).await.unwrap().events.len(), 2);
}

#[tokio::test]
async fn field_note_49_a_reader_never_skips_a_version_that_committed_late() {
    let catalog = Catalog::start().await;
    let operator = catalog.operator();
    put(&operator, "node/late", &node()).await;
    catalog.events(2).await;
    // A transaction that took its outbox id early and commits late.
    let database = catalog.database.open_superuser();
    let mut late = database.sqlx().begin().await.unwrap();
    sqlx::query(
        "INSERT INTO outbox (organization_id, key, version, kind, event_id, payload, occurred_at)
         SELECT organization_id, key, 2, kind, gen_random_uuid(), payload, occurred_at FROM feed WHERE revision = 1",
    )
    .execute(&mut *late)
    .await
    .unwrap();
    for n in 0..3 {
        put(&operator, &format!("node/n{n}"), &node()).await;
    }
    let before = catalog.events(8).await;
    let seen = before.last().unwrap().revision.unwrap();
    late.commit().await.unwrap();
    let query = FeedQuery {
        after: seen,
        limit: None,
        wait_seconds: Some(20),
    };
    let after = operator.feed(&query).await.unwrap();
    assert_eq!(after.events[0].resource_id.as_str(), "node/late");
    assert!(
        after.events[0].revision.unwrap() > seen,
        "placed after what readers have seen"
    );
}

#[tokio::test]
async fn a_watch_from_a_lists_revision_misses_nothing_and_resumes() {
    let catalog = Catalog::start().await;
    let (operator, control) = (catalog.operator(), catalog.control());
    put(&operator, "node/web-1", &node()).await;
    catalog.events(2).await;
    let listed = operator.resources(&ListResourcesQuery::default()).await.unwrap();
    let watching = operator.watch(
        &WatchQuery {
            after: Some(listed.revision),
            ..WatchQuery::default()
        },
        None,
    );
    futures::pin_mut!(watching);
    control
        .update_resource(&command("node/web-1", 1, observing(json!({"a": 1}))))
        .await
        .unwrap();
    let first = next(&mut watching).await;
    assert_eq!((first.version, first.revision), (2, Some(listed.revision + 1)));
    control
        .update_resource(&command("node/web-1", 2, observing(json!({"a": 2}))))
        .await
        .unwrap();
    assert_eq!(next(&mut watching).await.version, 3);
    let resumed = operator.watch(&WatchQuery::default(), first.revision.map(|r| r.to_string()));
    futures::pin_mut!(resumed);
    assert_eq!(next(&mut resumed).await.version, 3);
}

#[tokio::test]
async fn a_watch_tells_only_of_what_it_selects_and_when_that_leaves() {
    let catalog = Catalog::start().await;
    let operator = catalog.operator();
    let watching = operator.watch(
        &WatchQuery {
            after: Some(0),
            resource_type: Some("compute.node".parse().unwrap()),
            selector: Some("rack=a".into()),
            ..WatchQuery::default()
        },
        None,
    );
    futures::pin_mut!(watching);
    let mut other = node();
    other.labels.insert("rack".into(), "b".into());
    put(&operator, "node/other", &other).await;
    put(&operator, "node/web-1", &node()).await;
    put(&operator, "node/web-1", &other).await;
    put(&operator, "node/web-2", &node()).await;
    let mut told = Vec::new();
    for _ in 0..4 {
        let event = next(&mut watching).await;
        told.push((event.resource_id.to_string(), event.event_type.as_str().to_owned()));
    }
    let expected = [
        ("node/web-1", "resource.created"),
        ("node/web-1", "resource.updated"),
        ("node/web-1", "selection.left"),
        ("node/web-2", "resource.created"),
    ];
    assert_eq!(told, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
}

#[tokio::test]
async fn a_watch_selects_by_the_version_of_a_capability_as_the_list_does() {
    let catalog = Catalog::start().await;
    catalog.define().await;
    let operator = catalog.operator();
    for (name, version) in [("node/old", "1.4.0"), ("node/new", "2.1.0")] {
        put(&operator, name, &node()).await;
        observe(&operator, name, "web.http", version).await;
    }
    let query = WatchQuery {
        after: Some(0),
        capability: Some("web.http".parse().unwrap()),
        capability_version: Some(">=2".into()),
        ..WatchQuery::default()
    };
    let watching = operator.watch(&query, None);
    futures::pin_mut!(watching);
    assert_eq!(next(&mut watching).await.resource_id.as_str(), "node/new");
    let range_of_nothing = WatchQuery {
        capability: None,
        ..query
    };
    let refused = operator.watch(&range_of_nothing, None);
    futures::pin_mut!(refused);
    let refused = refused.next().await.unwrap().unwrap_err();
    assert_eq!(refused.problem().unwrap().errors[0].code, "missing_capability");
}

#[tokio::test]
async fn a_snapshot_holds_everything_up_to_its_revision_and_says_when_it_is_whole() {
    let catalog = Catalog::start().await;
    let operator = catalog.operator();
    let empty = snapshot(&operator).await;
    assert!(matches!(
        empty[..],
        [
            SnapshotLine::Head { revision: 0, .. },
            SnapshotLine::End { resources: 0 }
        ]
    ));
    for n in 0..5 {
        put(&operator, &format!("node/n{n}"), &node()).await;
    }
    let events = catalog.events(10).await;
    let lines = snapshot(&operator).await;
    assert!(matches!(lines[0], SnapshotLine::Head { revision: 5, .. }));
    assert!(matches!(lines[6], SnapshotLine::End { resources: 5 }));
    for (line, event) in lines[1..6]
        .iter()
        .zip(events.iter().filter(|e| e.event_type.as_str() == "resource.updated"))
    {
        let SnapshotLine::Resource { resource } = line else {
            panic!("{line:?}")
        };
        assert_eq!(
            serde_json::to_value(resource).unwrap(),
            serde_json::Value::Object(event.payload.clone())
        );
    }
}

#[tokio::test]
async fn field_note_52_a_projection_rebuilt_from_snapshot_and_feed_fires_nothing_twice() {
    let catalog = Catalog::start().await;
    let (operator, control) = (catalog.operator(), catalog.control());
    put(&operator, "node/web-1", &node()).await;
    put(&operator, "node/web-2", &node()).await;
    catalog.events(4).await;
    let lines = snapshot(&operator).await;
    let SnapshotLine::Head { revision, .. } = lines[0] else {
        panic!("{lines:?}")
    };
    control
        .update_resource(&command("node/web-2", 1, observing(json!({"a": 1}))))
        .await
        .unwrap();
    let query = FeedQuery {
        after: revision,
        limit: None,
        wait_seconds: Some(20),
    };
    let page = operator.feed(&query).await.unwrap();
    let told: Vec<_> = page
        .events
        .iter()
        .map(|e| (e.resource_id.to_string(), e.version))
        .collect();
    assert_eq!(told, [("node/web-2".to_owned(), 2)]);
}
