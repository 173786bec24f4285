//! What every source of the catalog's facts must do, whatever is behind it.
//!
//! The suite knows a source only through its port, and the catalog through [`Stage`]: what a test must be able to
//! do to it. A source that passes loses nothing for a reader that keeps its position with what it read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use contracts::CatalogProjectionEvent;
use futures::TryStreamExt as _;
use kernel::id::OrganizationId;

use crate::{EventBatch, EventSource, EventSourceError, SourceEvent};

/// How long a rule may take to come true.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long one read waits.
const WAIT: Duration = Duration::from_secs(5);

/// A catalog with a source of its facts, in the hands of the suite.
#[async_trait]
pub trait Stage: Send + Sync {
    /// A source that nobody has read from. What was read through another is nothing to it.
    fn source(&self) -> Arc<dyn EventSource>;

    /// Two organizations, with nothing in them at first.
    fn organizations(&self) -> [OrganizationId; 2];

    /// Makes the next version of a resource, from 1; its facts are on their way. Answers with the version.
    async fn change(&self, organization: OrganizationId, resource: &str) -> i64;

    /// The same, but its facts have a shape that this version cannot read. They still name their resource.
    async fn change_unreadably(&self, organization: OrganizationId, resource: &str) -> i64;

    /// From now on every fact is handed over twice, as after a break at an unlucky moment.
    async fn repeat(&self);

    /// What was told so far is not kept any longer. The resources themselves are.
    async fn retention_passes(&self);

    /// Whether the source's other side answers.
    async fn set_down(&self, down: bool);
}

/// The whole suite. `make` gives a new stage for each rule.
pub async fn suite<S: Stage>(make: impl AsyncFn() -> S) {
    versions_come_in_order(&make().await).await;
    nothing_is_lost_between_positions(&make().await).await;
    a_repeat_changes_nothing(&make().await).await;
    what_is_not_kept_is_told_and_a_snapshot_helps(&make().await).await;
    a_position_of_another_catalog_is_told(&make().await).await;
    one_unreadable_fact_hides_no_other(&make().await).await;
    silence_is_no_loss(&make().await).await;
    who_waits_is_told_at_once(&make().await).await;
    organizations_are_apart(&make().await).await;
    reading_on_after_a_snapshot_misses_nothing(&make().await).await;
}

/// A reader that keeps its position.
struct Reader {
    source: Arc<dyn EventSource>,
    organization: OrganizationId,
    after: i64,
    seen: Vec<SourceEvent>,
}

impl Reader {
    fn of<S: Stage>(stage: &S, after: i64) -> Self {
        Self {
            source: stage.source(),
            organization: stage.organizations()[0],
            after,
            seen: Vec::new(),
        }
    }

    async fn read(&mut self, limit: u32, wait: Duration) -> Result<EventBatch, EventSourceError> {
        let batch = self.source.read(self.organization, self.after, limit, wait).await?;
        assert!(batch.next_after >= self.after, "a position only moves forwards");
        assert!(batch.next_after <= batch.head, "nobody is ahead of the head");
        for revision in batch.events.iter().filter_map(revision) {
            let within = self.after < revision && revision <= batch.next_after;
            assert!(
                within,
                "revision {revision} is not between {} and {}",
                self.after, batch.next_after
            );
        }
        self.after = batch.next_after;
        self.seen.extend(batch.events.iter().cloned());
        Ok(batch)
    }

    /// Reads until `enough` of what was seen.
    async fn until(&mut self, limit: u32, rule: &str, enough: impl Fn(&[SourceEvent]) -> bool) {
        let begin = Instant::now();
        while !enough(&self.seen) {
            assert!(begin.elapsed() < PATIENCE, "not reached: {rule}; seen: {:?}", self.seen);
            self.read(limit, WAIT).await.expect(rule);
        }
    }

    async fn until_version(&mut self, limit: u32, resource: &str, version: i64) {
        let rule = format!("{resource} at version {version} is told");
        let told = |seen: &[SourceEvent]| {
            facts(seen).any(|fact| fact.resource_id.as_str() == resource && fact.version >= version)
        };
        self.until(limit, &rule, told).await;
    }

    /// Each version that was told of a resource, once, in the order of telling.
    fn versions(&self, resource: &str) -> Vec<i64> {
        let of = facts(&self.seen).filter(|fact| fact.resource_id.as_str() == resource);
        let mut versions: Vec<i64> = of.map(|fact| fact.version).collect();
        versions.dedup();
        versions
    }
}

fn facts(events: &[SourceEvent]) -> impl Iterator<Item = &CatalogProjectionEvent> {
    events.iter().filter_map(|event| match event {
        SourceEvent::Fact(fact) => Some(fact.as_ref()),
        SourceEvent::Unreadable { .. } => None,
    })
}

fn revision(event: &SourceEvent) -> Option<i64> {
    match event {
        SourceEvent::Fact(fact) => fact.revision,
        SourceEvent::Unreadable { revision, .. } => *revision,
    }
}

async fn changes<S: Stage>(stage: &S, resources: &[&str], count: usize) {
    for _ in 0..count {
        for resource in resources {
            stage.change(stage.organizations()[0], resource).await;
        }
    }
}

async fn versions_come_in_order<S: Stage>(stage: &S) {
    changes(stage, &["node/a", "node/b"], 5).await;
    let mut reader = Reader::of(stage, 0);
    reader.until_version(3, "node/b", 5).await;
    for resource in ["node/a", "node/b"] {
        assert_eq!(
            reader.versions(resource),
            [1, 2, 3, 4, 5],
            "every version of {resource}, in order"
        );
    }
    let revisions: Vec<i64> = reader.seen.iter().filter_map(revision).collect();
    assert!(revisions.is_sorted(), "the whole order is one: {revisions:?}");
    for fact in facts(&reader.seen) {
        assert_eq!(fact.organization_id, reader.organization);
        assert_eq!(
            fact.payload.get("resource_id").and_then(|id| id.as_str()),
            Some(fact.resource_id.as_str())
        );
    }
}

async fn nothing_is_lost_between_positions<S: Stage>(stage: &S) {
    changes(stage, &["node/a"], 6).await;
    let mut whole = Reader::of(stage, 0);
    whole.until_version(100, "node/a", 6).await;
    let mut first = Reader::of(stage, 0);
    first.until_version(2, "node/a", 2).await;
    // The reader dies; another one has its position.
    let mut second = Reader::of(stage, first.after);
    second.until_version(2, "node/a", 6).await;
    let joined: Vec<i64> = [first.versions("node/a"), second.versions("node/a")].concat();
    assert_eq!(
        joined,
        whole.versions("node/a"),
        "each exactly once, over a change of readers"
    );
    // It had read, and died before it stored what it read.
    let mut again = Reader::of(stage, 0);
    again.until_version(2, "node/a", 2).await;
    assert_eq!(again.seen, first.seen, "the same position gives the same facts again");
}

async fn a_repeat_changes_nothing<S: Stage>(stage: &S) {
    changes(stage, &["node/a"], 1).await;
    stage.repeat().await;
    changes(stage, &["node/a", "node/b"], 3).await;
    let mut reader = Reader::of(stage, 0);
    reader.until_version(2, "node/b", 3).await;
    assert_eq!(
        reader.versions("node/a"),
        [1, 2, 3, 4],
        "a repeat comes beside what it repeats"
    );
    assert_eq!(reader.versions("node/b"), [1, 2, 3]);
}

async fn what_is_not_kept_is_told_and_a_snapshot_helps<S: Stage>(stage: &S) {
    changes(stage, &["node/a"], 3).await;
    let mut early = Reader::of(stage, 0);
    early.until_version(1, "node/a", 1).await;
    let mut whole = Reader::of(stage, 0);
    whole.until_version(100, "node/a", 3).await;
    stage.retention_passes().await;
    for after in [0, early.after] {
        let gone = stage.source().read(early.organization, after, 10, Duration::ZERO).await;
        assert!(
            matches!(gone, Err(EventSourceError::PositionGone)),
            "after {after}: {gone:?}"
        );
    }
    let (position, versions) = snapshot(stage).await.expect("a snapshot is there");
    assert_eq!(versions, BTreeMap::from([("node/a".to_owned(), 3)]));
    changes(stage, &["node/a"], 1).await;
    for after in [position, whole.after] {
        let mut on = Reader::of(stage, after);
        on.until_version(10, "node/a", 4).await;
        assert_eq!(
            on.versions("node/a"),
            [4],
            "who had everything goes on, from a snapshot or from the facts"
        );
    }
}

/// The snapshot's revision, and the version of each resource in it.
async fn snapshot<S: Stage>(stage: &S) -> Result<(i64, BTreeMap<String, i64>), EventSourceError> {
    let snapshot = stage.source().snapshot(stage.organizations()[0]).await?;
    let resources: Vec<serde_json::Value> = snapshot.resources.try_collect().await?;
    let version = |state: &serde_json::Value| {
        let id = state
            .get("resource_id")
            .and_then(|id| id.as_str())
            .expect("a resource has an id");
        let version = state
            .get("version")
            .and_then(serde_json::Value::as_i64)
            .expect("a resource has a version");
        (id.to_owned(), version)
    };
    let versions: BTreeMap<String, i64> = resources.iter().map(version).collect();
    assert_eq!(versions.len(), resources.len(), "a snapshot has each resource once");
    Ok((snapshot.revision, versions))
}

async fn a_position_of_another_catalog_is_told<S: Stage>(stage: &S) {
    changes(stage, &["node/a"], 1).await;
    let mut reader = Reader::of(stage, 0);
    reader.until_version(10, "node/a", 1).await;
    let ahead = stage
        .source()
        .read(reader.organization, reader.after + 1_000_000, 10, Duration::ZERO)
        .await;
    assert!(matches!(ahead, Err(EventSourceError::PositionGone)), "{ahead:?}");
}

async fn one_unreadable_fact_hides_no_other<S: Stage>(stage: &S) {
    let organization = stage.organizations()[0];
    stage.change(organization, "node/a").await;
    stage.change_unreadably(organization, "node/b").await;
    stage.change(organization, "node/a").await;
    stage.change(organization, "node/b").await;
    let mut reader = Reader::of(stage, 0);
    reader.until_version(1, "node/b", 2).await;
    assert_eq!(reader.versions("node/a"), [1, 2]);
    assert_eq!(
        reader.versions("node/b"),
        [2],
        "the next good fact of the same resource comes too"
    );
    let unreadable: BTreeSet<Option<&str>> = reader
        .seen
        .iter()
        .filter_map(|event| match event {
            SourceEvent::Unreadable { resource_id, .. } => Some(resource_id.as_deref()),
            SourceEvent::Fact(_) => None,
        })
        .collect();
    assert_eq!(
        unreadable,
        BTreeSet::from([Some("node/b")]),
        "it is handed over, with whose it is"
    );
}

async fn silence_is_no_loss<S: Stage>(stage: &S) {
    changes(stage, &["node/a"], 1).await;
    let mut reader = Reader::of(stage, 0);
    reader.until_version(10, "node/a", 1).await;
    stage.set_down(true).await;
    changes(stage, &["node/a"], 2).await;
    let silent = reader.read(10, Duration::ZERO).await;
    assert!(matches!(silent, Err(EventSourceError::Unreachable(_))), "{silent:?}");
    let silent = snapshot(stage).await;
    assert!(matches!(silent, Err(EventSourceError::Unreachable(_))), "{silent:?}");
    stage.set_down(false).await;
    reader.until_version(10, "node/a", 3).await;
    assert_eq!(reader.versions("node/a"), [1, 2, 3]);
}

async fn who_waits_is_told_at_once<S: Stage>(stage: &S) {
    changes(stage, &["node/a"], 1).await;
    let mut reader = Reader::of(stage, 0);
    reader.until_version(10, "node/a", 1).await;
    let nothing = reader.read(10, Duration::ZERO).await.expect("an empty batch");
    assert_eq!(nothing.events, [], "who does not wait is told that nothing came");
    let waiting = reader.read(10, PATIENCE / 3);
    let (told, _) = tokio::join!(waiting, changes(stage, &["node/a"], 1));
    let told = told.expect("what came ends the wait");
    assert_eq!(
        facts(&told.events).map(|fact| fact.version).collect::<BTreeSet<_>>(),
        BTreeSet::from([2])
    );
}

async fn organizations_are_apart<S: Stage>(stage: &S) {
    let [ours, theirs] = stage.organizations();
    stage.change(ours, "node/a").await;
    stage.change(theirs, "node/a").await;
    stage.change(theirs, "node/secret").await;
    stage.change(ours, "node/a").await;
    let mut reader = Reader::of(stage, 0);
    reader.until_version(1, "node/a", 2).await;
    assert!(facts(&reader.seen).all(|fact| fact.organization_id == ours));
    assert!(reader.versions("node/secret").is_empty());
    let (_, versions) = snapshot(stage).await.expect("a snapshot is there");
    assert_eq!(versions, BTreeMap::from([("node/a".to_owned(), 2)]));
}

async fn reading_on_after_a_snapshot_misses_nothing<S: Stage>(stage: &S) {
    changes(stage, &["node/a", "node/b", "node/c"], 1).await;
    let (taken, ()) = tokio::join!(snapshot(stage), changes(stage, &["node/a", "node/b", "node/c"], 4));
    let (position, mut copy) = taken.expect("a snapshot is there");
    let mut reader = Reader::of(stage, position);
    for resource in ["node/a", "node/b", "node/c"] {
        if copy.get(resource) != Some(&5) {
            reader.until_version(2, resource, 5).await;
        }
        let known = copy.get(resource).copied().unwrap_or(0);
        let follows = reader.versions(resource).into_iter().filter(|version| *version > known);
        let wanted: Vec<i64> = (known + 1..=5).collect();
        assert_eq!(
            follows.collect::<Vec<_>>(),
            wanted,
            "what follows the snapshot is the next version of {resource}"
        );
        copy.insert(resource.to_owned(), 5);
    }
}
