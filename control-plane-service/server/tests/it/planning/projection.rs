use std::sync::Arc;

use control_plane_api::{PageQuery, ProjectionView, RebuildRequest};
use control_plane_ports::SourceEvent;
use kernel::id::OrganizationId;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::harness::{Harness, fact, host, rack};

impl Harness {
    async fn view(&self) -> ProjectionView {
        self.client()
            .projections(&PageQuery::default())
            .await
            .unwrap()
            .items
            .remove(0)
    }

    /// `resource_id@version` of everything that is there, by id.
    async fn copy(&self) -> Vec<String> {
        let superuser = self.database.open_superuser();
        let rows = superuser
            .hot()
            .get()
            .await
            .unwrap()
            .query(
                "SELECT resource_id, version FROM projected_resources WHERE NOT deleted ORDER BY resource_id",
                &[],
            )
            .await
            .unwrap();
        let told = |row: &tokio_postgres::Row| format!("{}@{}", row.get::<_, String>(0), row.get::<_, i64>(1));
        rows.iter().map(told).collect()
    }

    fn event(&self, revision: i64, state: Value) {
        let fact = fact(self.organization, revision, "resource.updated", state);
        self.catalog.with(|world| {
            world.events.push(fact);
            world.revision = world.revision.max(revision);
        });
    }
}

#[tokio::test]
async fn old_facts_are_dropped_next_ones_applied_and_jumps_told() {
    let harness = Harness::new().await;
    harness.catch_up().await;
    harness.event(1, host("a", "r", 1));
    harness.event(2, host("a", "r", 2));
    harness.event(2, host("a", "r", 2));
    harness.event(3, host("a", "r", 1));
    harness.event(4, host("b", "r", 1));
    harness.catch_up().await;
    assert_eq!(harness.copy().await, ["node/a@2", "node/b@1"]);
    assert_eq!(harness.view().await.gaps, 0);
    harness.event(9, host("a", "r", 6));
    harness.catch_up().await;
    assert_eq!(harness.copy().await, ["node/a@6", "node/b@1"]);
    let view = harness.view().await;
    assert_eq!((view.gaps, view.revision, view.head, view.lag_revisions), (1, 9, 9, 0));
}

#[tokio::test]
async fn a_poison_fact_sets_its_own_resource_aside_and_nothing_else() {
    let harness = Harness::new().await;
    harness.catch_up().await;
    harness.event(1, host("a", "r", 1));
    let mut poison = host("a", "r", 2);
    poison["lifecycle_status"] = json!("dreaming");
    harness.event(2, poison);
    harness.catalog.with(|world| {
        world.revision = 3;
        world.events.push(SourceEvent::Unreadable {
            revision: Some(3),
            resource_id: Some("node/c".into()),
            problem: "no such shape".into(),
            raw: json!({"x": 1}),
        });
    });
    harness.event(4, host("b", "r", 1));
    harness.catch_up().await;
    assert_eq!(harness.copy().await, ["node/a@1", "node/b@1"]);
    let view = harness.view().await;
    let parked: Vec<(&str, i64)> = view
        .parked
        .iter()
        .map(|p| (p.resource_id.as_str(), p.revision))
        .collect();
    assert_eq!(parked, [("node/a", 2), ("node/c", 3)]);
    assert!(
        view.parked[0].problem.contains("dreaming"),
        "{}",
        view.parked[0].problem
    );
    harness.event(5, host("a", "r", 3));
    harness.catch_up().await;
    assert_eq!(
        harness.copy().await,
        ["node/a@3", "node/b@1"],
        "the next good fact brings it back"
    );
    assert_eq!(harness.view().await.parked.len(), 1);
}

#[tokio::test]
async fn a_deleted_resource_is_gone_and_no_late_fact_brings_it_back() {
    let harness = Harness::new().await;
    harness.catch_up().await;
    harness.event(1, host("a", "r", 1));
    let deleted = fact(harness.organization, 2, "resource.deleted", host("a", "r", 2));
    harness.catalog.with(|world| {
        world.events.push(deleted);
        world.revision = 2;
    });
    harness.event(3, host("a", "r", 1));
    harness.catch_up().await;
    assert!(harness.copy().await.is_empty());
    harness.event(4, host("a", "r", 3));
    harness.catch_up().await;
    assert_eq!(
        harness.copy().await,
        ["node/a@3"],
        "another incarnation goes on with the versions"
    );
}

#[tokio::test]
async fn field_note_52_a_rebuild_removes_what_is_gone_and_applies_nothing_twice() {
    let harness = Harness::ready().await;
    let before = harness.copy().await;
    assert_eq!(before.len(), 6);
    harness.catalog.with(|world| {
        // The feed forgot its past, and one host went meanwhile.
        world.resources.retain(|state| state["resource_id"] != "node/web-b");
        world.revision = 40;
        world.forgotten = 40;
        world.events.clear();
    });
    harness.catch_up().await;
    let copy = harness.copy().await;
    assert_eq!(
        copy,
        ["node/web-a@1", "node/web-c@1", "rack/a@1", "rack/b@1", "rack/c@1"]
    );
    let edges = harness.database.open_superuser();
    let gone = "SELECT 1 FROM projected_edges WHERE source = 'node/web-b'";
    assert!(
        edges
            .hot()
            .get()
            .await
            .unwrap()
            .query(gone, &[])
            .await
            .unwrap()
            .is_empty()
    );
    let snapshots = harness.catalog.with(|world| world.snapshots);
    harness.catch_up().await;
    assert_eq!(
        harness.catalog.with(|world| world.snapshots),
        snapshots,
        "one rebuild is enough"
    );
    assert_eq!((harness.view().await.gaps, harness.view().await.revision), (0, 40));
    harness.event(41, host("web-a", "a", 2));
    harness.catch_up().await;
    assert_eq!(
        harness.view().await.gaps,
        0,
        "what follows the snapshot is the next version"
    );
}

#[tokio::test]
async fn a_catalog_that_was_restored_to_an_earlier_state_is_taken_as_it_is() {
    let harness = Harness::ready().await;
    harness.event(20, host("web-a", "a", 9));
    harness.catch_up().await;
    harness.catalog.with(|world| {
        world.revision = 3;
        world.events.clear();
        world.resources = vec![host("web-a", "a", 4)];
    });
    harness.catch_up().await;
    assert_eq!(harness.copy().await, ["node/web-a@4"]);
}

#[tokio::test]
async fn a_copy_is_read_while_it_is_rebuilt_and_a_broken_rebuild_changes_nothing_for_the_worse() {
    let harness = Harness::ready().await;
    harness.app.projection.ask_rebuild(harness.organization).await.unwrap();
    harness.catalog.with(|world| world.silent = true);
    assert!(harness.app.projection.step(harness.organization).await.is_err());
    let preview = harness.client().preview(&harness.request(), None).await.unwrap();
    assert!(preview.satisfiable);
    harness.catalog.with(|world| world.silent = false);
    harness.app.projection.step(harness.organization).await.unwrap();
    assert_eq!(harness.copy().await.len(), 6);
}

#[tokio::test]
async fn an_operator_has_a_copy_made_anew_while_it_is_followed_and_sees_when_that_is_done() {
    let harness = Harness::ready().await;
    let stop = CancellationToken::new();
    let projection = harness.app.projection.clone();
    let running = tokio::spawn(projection.run(vec![harness.organization], stop.clone()));
    let is_kept = |state: &Value| state["resource_id"] != "node/web-c";
    harness.catalog.with(|world| world.resources.retain(is_kept));
    let (before, first) = (harness.catalog.with(|world| world.snapshots), harness.view().await);
    let request = RebuildRequest {
        reason: "it looks odd".into(),
    };
    let asked = harness.client().rebuild_projection("catalog", &request).await.unwrap();
    assert!(asked.rebuilding);
    let rebuilt = loop {
        let view = harness.view().await;
        if !view.rebuilding {
            break view;
        }
        tokio::task::yield_now().await;
    };
    assert!(rebuilt.rebuilt_at > first.rebuilt_at);
    assert_eq!(harness.catalog.with(|world| world.snapshots), before + 1);
    assert_eq!(harness.copy().await.len(), 5, "what the catalog lacks is gone");
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn only_who_may_change_things_has_a_copy_made_anew_and_only_one_that_exists() {
    let harness = Harness::ready().await;
    let request = RebuildRequest::default();
    let viewer = harness.client_of(harness.organization, identity::Role::Viewer);
    let refused = viewer.rebuild_projection("catalog", &request).await.unwrap_err();
    assert_eq!(refused.status(), Some(403));
    let unknown = harness.client().rebuild_projection("moon", &request).await.unwrap_err();
    assert_eq!(unknown.status(), Some(404));
    assert!(!harness.view().await.rebuilding);
}

#[tokio::test]
async fn two_followers_of_one_organization_apply_everything_once() {
    let harness = Arc::new(Harness::new().await);
    harness.catch_up().await;
    for version in 1..=50 {
        harness.event(version, host("a", "r", version));
    }
    let steps = (0..4).map(|_| {
        let harness = harness.clone();
        tokio::spawn(async move { harness.app.projection.step(harness.organization).await.unwrap() })
    });
    for step in steps.collect::<Vec<_>>() {
        step.await.unwrap();
    }
    assert_eq!(harness.copy().await, ["node/a@50"]);
    assert_eq!((harness.view().await.gaps, harness.view().await.revision), (0, 50));
}

#[tokio::test]
async fn who_has_written_waits_for_a_plan_that_knows_of_it() {
    let harness = Harness::ready().await;
    let stop = CancellationToken::new();
    let running = tokio::spawn(
        harness
            .app
            .projection
            .clone()
            .run(vec![harness.organization], stop.clone()),
    );
    harness.catalog.tell(harness.organization, host("web-a", "a", 2));
    let preview = harness
        .client()
        .preview(&harness.request(), Some("node/web-a@2"))
        .await
        .unwrap();
    assert_eq!(
        preview.advice.freshness.revision,
        harness.catalog.with(|world| world.revision)
    );
    let odd = harness
        .client()
        .preview(&harness.request(), Some("node/web-a"))
        .await
        .unwrap_err();
    assert_eq!(odd.status(), Some(422));
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn a_copy_is_seen_by_its_own_organization_only() {
    let harness = Harness::ready().await;
    let stranger = harness.client_of(OrganizationId::new_v7(), identity::Role::Admin);
    assert!(
        stranger
            .projections(&PageQuery::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    harness.catalog.tell(harness.organization, rack("z"));
}
