//! A database with the outbox's tables, writers, and a reader that keeps a cursor.

use chrono::Utc;
use database::testing::TestDatabase;
use database::{Database, OrgTransaction, Scope, ServiceDatabase, ServiceRole};
use kernel::id::OrganizationId;
use outbox::{Feed, FeedEvent, Leader, NewEvent, Signal, append};
use uuid::Uuid;

static MIGRATOR: sqlx::migrate::Migrator = sqlx::migrate!("tests/migrations");
const POST: ServiceDatabase = ServiceDatabase::new("post");

pub struct World {
    pub test: TestDatabase,
    pub api: Database,
    pub worker: Database,
    pub organization: OrganizationId,
    pub signal: Signal,
}

impl World {
    pub async fn new() -> Self {
        let test = TestDatabase::create(POST, &MIGRATOR).await;
        Self {
            api: test.open(ServiceRole::Api),
            worker: test.open(ServiceRole::Worker),
            organization: OrganizationId::new_v7(),
            signal: Signal::default(),
            test,
        }
    }

    pub fn event(&self, key: &str, version: i64) -> NewEvent {
        NewEvent {
            organization: self.organization,
            key: key.to_owned(),
            version,
            kind: "resource.updated".to_owned(),
            event_id: Uuid::new_v4(),
            payload: format!("{{\"version\":{version}}}"),
            occurred_at: Utc::now(),
            traceparent: None,
        }
    }

    /// A transaction of a writer that has written but not committed.
    pub async fn writing(&self, key: &str, version: i64) -> OrgTransaction {
        let transaction = self.api.begin_hot(self.organization).await.unwrap();
        append(&transaction, &[self.event(key, version)]).await.unwrap();
        transaction
    }

    pub async fn write(&self, key: &str, version: i64) {
        self.writing(key, version).await.commit().await.unwrap();
    }

    pub async fn leader(&self) -> Leader {
        Leader::elect(&self.worker).await.unwrap().expect("nobody else leads")
    }

    pub fn reader(&self) -> Reader {
        Reader {
            feed: Feed::new(self.worker.clone(), Signal::default()),
            after: 0,
            seen: Vec::new(),
        }
    }

    /// One number, as superuser.
    pub async fn count(&self, query: &str) -> i64 {
        let superuser = self.test.open_superuser();
        let client = superuser.hot().get().await.unwrap();
        client.query_one(query, &[]).await.unwrap().get(0)
    }

    /// Runs a statement as superuser.
    pub async fn sql(&self, statement: &str) {
        let superuser = self.test.open_superuser();
        superuser
            .hot()
            .get()
            .await
            .unwrap()
            .batch_execute(statement)
            .await
            .unwrap();
    }
}

/// Follows the feed of all organizations by a cursor, as a consumer does.
pub struct Reader {
    pub feed: Feed,
    pub after: i64,
    pub seen: Vec<FeedEvent>,
}

impl Reader {
    /// Reads to the end, in small pages.
    pub async fn catch_up(&mut self) {
        loop {
            let page = self.feed.read(self.after, 3, Scope::All).await.unwrap();
            self.after = page.next_after;
            if page.events.is_empty() {
                return;
            }
            self.seen.extend(page.events);
        }
    }

    /// What was seen, as `key:version`.
    pub fn names(&self) -> Vec<String> {
        self.seen
            .iter()
            .map(|event| format!("{}:{}", event.key, event.version))
            .collect()
    }

    /// Revisions have no gap and begin with 1.
    pub fn assert_gapless(&self) {
        let revisions: Vec<i64> = self.seen.iter().map(|event| event.revision).collect();
        let expected: Vec<i64> = (1..=i64::try_from(revisions.len()).unwrap()).collect();
        assert_eq!(revisions, expected);
    }
}

/// Carries everything that is committed.
pub async fn drain(leader: &mut Leader) {
    while leader.batch(4).await.unwrap().placed > 0 {}
}
