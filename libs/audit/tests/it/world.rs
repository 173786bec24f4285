//! A database with the tables, who writes facts, and who verifies them.

use audit::{Broken, HeadHash, NewFact, Verifier, append, chain_batch};
use database::testing::TestDatabase;
use database::{Database, OrgTransaction, ServiceDatabase, ServiceRole};
use kernel::id::OrganizationId;
use serde_json::json;
use uuid::Uuid;

pub static MIGRATOR: sqlx::migrate::Migrator = sqlx::migrate!("tests/migrations");
const LEDGER: ServiceDatabase = ServiceDatabase::new("ledger");
/// Smaller than what is verified, so that pages have borders.
const PAGE: u32 = 3;

pub struct World {
    pub test: TestDatabase,
    pub api: Database,
    pub worker: Database,
    pub organization: OrganizationId,
}

impl World {
    pub async fn new() -> Self {
        let test = TestDatabase::create(LEDGER, &MIGRATOR).await;
        Self {
            api: test.open(ServiceRole::Api),
            worker: test.open(ServiceRole::Worker),
            organization: OrganizationId::new_v7(),
            test,
        }
    }

    pub fn fact(&self, subject: &str) -> NewFact {
        NewFact {
            id: Uuid::now_v7(),
            organization: self.organization,
            actor: "person:ada".into(),
            action: "note.write".into(),
            subject: subject.into(),
            allowed: true,
            result: "accepted".into(),
            reason: String::new(),
            remote_address: "127.0.0.1".into(),
            detail: json!({"b": 1, "a": {"text": "ü"}}),
        }
    }

    /// A command that has written its fact but not committed.
    pub async fn writing(&self, subject: &str) -> OrgTransaction {
        let transaction = self.api.begin_hot(self.organization).await.unwrap();
        append(&transaction, &[self.fact(subject)]).await.unwrap();
        transaction
    }

    pub async fn write(&self, subjects: &[&str]) {
        for subject in subjects {
            self.writing(subject).await.commit().await.unwrap();
        }
    }

    /// A chain of `count` facts, `note/1` to `note/<count>`.
    pub async fn chained(count: usize) -> Self {
        let world = Self::new().await;
        for number in 1..=count {
            world.write(&[&format!("note/{number}")]).await;
        }
        chain_batch(&world.worker, 1_000).await.unwrap();
        world
    }

    /// The subjects in the order of the chain.
    pub async fn order(&self) -> Vec<String> {
        let page = audit::chain(&self.api, self.organization, 0, 1_000).await.unwrap();
        let subjects = page.links.into_iter().map(|link| link.fact.unwrap().subject);
        subjects.collect()
    }

    pub async fn verify(&self) -> Result<HeadHash, Broken> {
        self.verify_with([]).await
    }

    pub async fn verify_with(&self, known: impl IntoIterator<Item = HeadHash>) -> Result<HeadHash, Broken> {
        let head = audit::head(&self.api, self.organization).await.unwrap();
        let mut verifier = Verifier::new(known.into_iter().chain(head.head));
        loop {
            let page = audit::chain(&self.api, self.organization, verifier.after(), PAGE)
                .await
                .unwrap();
            for link in &page.links {
                verifier.follow(link)?;
            }
            if page.next_after.is_none() {
                verifier.end_at(&head)?;
                return Ok(verifier.end().unwrap());
            }
        }
    }

    /// What a forger does who owns the server. Triggers stay silent.
    pub async fn forge(&self, sql: &str) {
        let superuser = self.test.open_superuser();
        let sql = format!("BEGIN; SET LOCAL session_replication_role TO replica; {sql}; COMMIT");
        superuser.hot().get().await.unwrap().batch_execute(&sql).await.unwrap();
        superuser.close().await;
    }
}
