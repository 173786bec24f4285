//! The suite of the port, over a whole catalog on a real PostgreSQL.
//!
//! Between the source and the catalog stands a relay that can be told to misbehave: to be silent, to hand facts
//! over twice, to bend one that no version of the catalog would write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{TimeDelta, Utc};
use client_kit::Client;
use contracts::LifecycleStatus;
use control_plane_ports::EventSource;
use control_plane_ports::conformance::events::{Stage, suite};
use database::testing::TestDatabase;
use events_feed::FeedSource;
use identity::{Minter, PrivateKey, Role, RotatingToken, ServiceTokens, TrustStore, TrustedKey, Vouch};
use kernel::id::OrganizationId;
use resource_catalog_api::ApplyResource;
use resource_catalog_server::{Config, DATABASE, MIGRATOR, build};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[derive(Default)]
struct Mood {
    down: bool,
    repeats: bool,
    /// Resource and version whose facts are bent.
    unreadable: BTreeSet<(String, i64)>,
}

#[derive(Clone)]
struct Relay {
    to: String,
    http: reqwest::Client,
    mood: Arc<Mutex<Mood>>,
}

impl Relay {
    fn mood(&self) -> MutexGuard<'_, Mood> {
        self.mood.lock().unwrap()
    }

    /// A page of the feed as it is handed on.
    fn bend(&self, mut page: Value) -> Value {
        let mood = self.mood();
        let mut events = Vec::new();
        for mut event in page["events"].as_array().unwrap().clone() {
            let of = event["resource_id"].as_str().unwrap().to_owned();
            if mood.unreadable.contains(&(of, event["version"].as_i64().unwrap())) {
                event["version"] = json!("in words");
            }
            events.extend(std::iter::repeat_n(event, if mood.repeats { 2 } else { 1 }));
        }
        page["events"] = Value::Array(events);
        page
    }
}

fn silence() -> Response {
    let problem = json!({"title": "Not available", "status": 503, "code": "unavailable"});
    let kind = [(header::CONTENT_TYPE, "application/problem+json")];
    (StatusCode::SERVICE_UNAVAILABLE, kind, problem.to_string()).into_response()
}

async fn relay(State(relay): State<Relay>, request: Request) -> Response {
    if relay.mood().down {
        return silence();
    }
    let uri = request.uri();
    let call = relay
        .http
        .get(format!("{}{uri}", relay.to))
        .headers(request.headers().clone());
    let answer = call.send().await.unwrap();
    let (status, kind) = (answer.status(), answer.headers().get(header::CONTENT_TYPE).cloned());
    let kind = kind.map(|kind| (header::CONTENT_TYPE, kind));
    let body = match uri.path() {
        "/v1/feed" if status.is_success() => {
            let page: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
            Body::from(relay.bend(page).to_string())
        }
        _ => Body::from_stream(answer.bytes_stream()),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().extend(kind);
    response
}

struct Feed {
    database: TestDatabase,
    relay: Relay,
    minter: Minter,
    source: Client,
    organizations: [OrganizationId; 2],
    shutdown: CancellationToken,
}

async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    base
}

impl Feed {
    async fn start() -> Self {
        let database = TestDatabase::create(DATABASE, &MIGRATOR).await;
        let key = PrivateKey::generate();
        let trust = TrustStore::new([TrustedKey::new(key.public_key(), [Vouch::Issuer])]);
        let service = build(Config::new(database.urls().clone(), trust)).await.unwrap();
        let catalog = serve(service.router()).await;
        let shutdown = CancellationToken::new();
        tokio::spawn(service.run(shutdown.clone()));
        let between = Relay {
            to: catalog,
            http: reqwest::Client::new(),
            mood: Arc::default(),
        };
        let base = serve(Router::new().fallback(relay).with_state(between.clone())).await;
        let tokens = ServiceTokens::new(Minter::new(key.clone(), "test"), "control-plane");
        Self {
            database,
            relay: between,
            minter: Minter::new(key, "test"),
            source: Client::new(&base, Some(Arc::new(tokens)))
                .unwrap()
                .with_retries(client_kit::Retries::NONE),
            organizations: [OrganizationId::new_v7(), OrganizationId::new_v7()],
            shutdown,
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

#[async_trait]
impl Stage for Feed {
    fn source(&self) -> Arc<dyn EventSource> {
        Arc::new(FeedSource::new(self.source.clone()))
    }

    fn organizations(&self) -> [OrganizationId; 2] {
        self.organizations
    }

    async fn change(&self, organization: OrganizationId, resource: &str) -> i64 {
        let token = self.minter.mint(
            "person:op",
            organization,
            [Role::Operator],
            TimeDelta::minutes(5),
            Utc::now(),
        );
        let tokens = Arc::new(RotatingToken::new(token.unwrap()));
        let kit = Client::new(&self.relay.to, Some(tokens)).unwrap();
        let wanted = ApplyResource {
            resource_type: "compute.node".parse().unwrap(),
            environment: Some("demo".into()),
            labels: BTreeMap::from([("change".into(), uuid::Uuid::now_v7().to_string())]),
            annotations: BTreeMap::new(),
            lifecycle_status: Some(LifecycleStatus::Running),
            desired_state: Map::new(),
            connection: Map::new(),
            edges: None,
        };
        let id = resource.parse().unwrap();
        let applied = resource_catalog_api::Client::from(kit)
            .apply_resource(&id, &wanted, None)
            .await;
        applied.unwrap().body.version
    }

    async fn change_unreadably(&self, organization: OrganizationId, resource: &str) -> i64 {
        let version = self.change(organization, resource).await;
        self.relay.mood().unreadable.insert((resource.to_owned(), version));
        version
    }

    async fn repeat(&self) {
        self.relay.mood().repeats = true;
    }

    /// As the reaper does it, without its patience.
    async fn retention_passes(&self) {
        let superuser = self.database.open_superuser();
        let client = superuser.hot().get().await.unwrap();
        let reap = "DELETE FROM feed WHERE revision <= (SELECT head FROM feed_state); \
            UPDATE feed_state SET floor = head";
        client.batch_execute(reap).await.unwrap();
    }

    async fn set_down(&self, down: bool) {
        self.relay.mood().down = down;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_feed_passes_the_conformance_suite() {
    suite(Feed::start).await;
}
