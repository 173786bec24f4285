//! The notebook, served on a socket of its own.

use api_kit::{Api, serve};
use chrono::{TimeDelta, Utc};
use database::testing::TestDatabase;
use database::{Database, ServiceDatabase, ServiceRole};
use identity::{Minter, PrivateKey, Role, TrustStore, TrustedKey, Vouch};
use kernel::id::OrganizationId;
use reqwest::{Client, Method, RequestBuilder};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::notebook;

static MIGRATOR: sqlx::migrate::Migrator = sqlx::migrate!("tests/migrations");
const NOTES: ServiceDatabase = ServiceDatabase::new("notes");

pub struct Live {
    pub api: Api,
    pub url: String,
    pub minter: Minter,
    pub organization: OrganizationId,
    pub database: Database,
    pub client: Client,
    pub shutdown: CancellationToken,
    pub served: JoinHandle<std::io::Result<()>>,
    // Dropped last: the database goes when nobody uses it any more.
    pub test: TestDatabase,
}

impl Live {
    pub async fn start() -> Self {
        let test = TestDatabase::create(NOTES, &MIGRATOR).await;
        let database = test.open(ServiceRole::Api);
        let key = PrivateKey::generate();
        let trust = TrustStore::new([TrustedKey::new(key.public_key(), [Vouch::Issuer])]);
        let api = notebook::build(&database, notebook::rules(), trust).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shutdown = CancellationToken::new();
        let served = tokio::spawn(serve(listener, api.router.clone(), shutdown.clone()));
        Self {
            api,
            url,
            minter: Minter::new(key, "test"),
            organization: OrganizationId::new_v7(),
            database,
            client: Client::builder().no_proxy().build().unwrap(),
            shutdown,
            served,
            test,
        }
    }

    pub fn token(&self, roles: &[Role]) -> String {
        let minted = self.minter.mint(
            "person:ada",
            self.organization,
            roles.to_vec(),
            TimeDelta::minutes(5),
            Utc::now(),
        );
        minted.unwrap().expose().to_owned()
    }

    /// A request of an operator.
    pub fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        self.client
            .request(method, format!("{}{path}", self.url))
            .bearer_auth(self.token(&[Role::Operator]))
    }

    /// Writes a note and gives its path.
    pub async fn note(&self, body: &str) -> String {
        let answer = self
            .request("POST", "/v1/notes")
            .header("idempotency-key", uuid::Uuid::new_v4().to_string())
            .json(&serde_json::json!({ "body": body }))
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 201);
        answer.headers()["location"].to_str().unwrap().to_owned()
    }

    /// How many notes there are.
    pub async fn count(&self) -> i64 {
        let transaction = self.database.begin_hot(self.organization).await.unwrap();
        transaction
            .query_one("SELECT count(*) FROM notes", &[])
            .await
            .unwrap()
            .get(0)
    }
}
