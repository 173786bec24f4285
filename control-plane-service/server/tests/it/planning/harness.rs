//! The planning side over HTTP, with a catalog that says what a test wants it to say.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use api_kit::{AccessTable, ApiBuilder};
use async_trait::async_trait;
use bytes::Bytes;
use chrono::{TimeDelta, Utc};
use client_kit::Client;
use control_plane_api::{ControlPlane, PageQuery, PlanRequest};
use control_plane_ports::{EventBatch, EventSource, EventSourceError, Snapshot, SourceEvent};
use control_plane_scenario::Bundle;
use control_plane_server::planning::{self, PlanningApp};
use control_plane_server::{Config, DATABASE, MIGRATOR};
use database::testing::TestDatabase;
use identity::{Minter, PrivateKey, Role, RotatingToken, TrustStore, TrustedKey, Vouch};
use kernel::id::{OrganizationId, ResourceUid};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// What the catalog holds and tells.
#[derive(Default)]
pub struct World {
    pub events: Vec<SourceEvent>,
    pub resources: Vec<Value>,
    pub revision: i64,
    /// Positions before this one are gone.
    pub forgotten: i64,
    pub silent: bool,
    pub snapshots: usize,
}

/// A catalog in memory.
#[derive(Clone, Default)]
pub struct FakeCatalog(Arc<Mutex<World>>);

impl FakeCatalog {
    pub fn with<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }

    /// Tells of a resource's state, and has it in snapshots from now on.
    pub fn tell(&self, organization: OrganizationId, state: Value) {
        self.with(|world| {
            world.revision += 1;
            world
                .resources
                .retain(|other| other["resource_id"] != state["resource_id"]);
            world.resources.push(state.clone());
            world
                .events
                .push(fact(organization, world.revision, "resource.updated", state));
        });
    }
}

fn silence() -> EventSourceError {
    EventSourceError::Unreachable("the catalog is switched off".into())
}

#[async_trait]
impl EventSource for FakeCatalog {
    async fn read(
        &self,
        _organization: OrganizationId,
        after: i64,
        limit: u32,
        wait: Duration,
    ) -> Result<EventBatch, EventSourceError> {
        let batch = self.with(|world| {
            if world.silent {
                return Err(silence());
            }
            if after < world.forgotten || after > world.revision {
                return Err(EventSourceError::PositionGone);
            }
            let revision = |event: &SourceEvent| match event {
                SourceEvent::Fact(fact) => fact.revision.unwrap(),
                SourceEvent::Unreadable { revision, .. } => revision.unwrap(),
            };
            let events: Vec<SourceEvent> = world
                .events
                .iter()
                .filter(|e| revision(e) > after)
                .take(limit as usize)
                .cloned()
                .collect();
            let next_after = events.last().map_or(after, revision);
            Ok(EventBatch {
                events,
                next_after,
                head: world.revision,
            })
        })?;
        if batch.events.is_empty() {
            tokio::time::sleep(wait.min(Duration::from_millis(20))).await;
        }
        Ok(batch)
    }

    async fn snapshot(&self, _organization: OrganizationId) -> Result<Snapshot, EventSourceError> {
        self.with(|world| {
            if world.silent {
                return Err(silence());
            }
            world.snapshots += 1;
            let resources: Vec<Result<Value, EventSourceError>> = world.resources.iter().cloned().map(Ok).collect();
            Ok(Snapshot {
                revision: world.revision,
                resources: Box::pin(futures::stream::iter(resources)),
            })
        })
    }
}

/// A fact with that state as its payload.
pub fn fact(organization: OrganizationId, revision: i64, event_type: &str, state: Value) -> SourceEvent {
    let raw = json!({
        "event_id": Uuid::now_v7(), "event_type": event_type, "resource_id": state["resource_id"],
        "resource_type": state["resource_type"], "organization_id": organization, "version": state["version"],
        "payload": state, "occurred_at": "2026-01-01T00:00:00Z", "uid": state["uid"], "revision": revision
    });
    SourceEvent::Fact(Box::new(serde_json::from_value(raw).unwrap()))
}

/// A running Linux host in `rack`, at `version`.
pub fn host(name: &str, rack: &str, version: i64) -> Value {
    let uid = ResourceUid(Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes()));
    json!({
        "resource_id": format!("node/{name}"), "uid": uid, "resource_type": "compute.node",
        "resource_type_ancestors": ["compute"], "organization_id": Uuid::nil(), "environment": "demo",
        "labels": {"tier": "web"}, "lifecycle_status": "running", "health": {"status": "healthy"},
        "connection": {"address": "127.0.0.11", "host_keys": ["ssh-ed25519 AAAA"]},
        "version": version, "desired_generation": 1,
        "provided_capabilities": [{
            "capability": "os.linux.debian", "implies": ["os.linux"], "attributes": {"version": "6.1.0-13-amd64"},
            "evidence": [], "provenance": {"kind": "observer", "subject": "s"}, "provided_at": "2026-01-01T00:00:00Z"
        }],
        "edges": [{"edge_type": "part_of", "target": format!("rack/{rack}")}],
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
        "pin": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    })
}

/// A rack.
pub fn rack(name: &str) -> Value {
    let mut rack = host(name, name, 1);
    rack["resource_id"] = json!(format!("rack/{name}"));
    rack["resource_type"] = json!("topology.rack");
    rack["edges"] = json!([]);
    rack["provided_capabilities"] = json!([]);
    rack
}

pub const TEMPLATE: &str = "name: roll
parameters:
  port: {schema: {type: integer}, default: 8080}
requirements:
  web:
    resource_type: compute.node
    count: {min: 2, max: 3}
    capabilities: [{name: os.linux, version: '>=6'}]
    distinct: {edge: part_of, type: topology.rack}
nodes:
  - id: roll
    kind: job
    for_each: {slot: web, max_parallel: 1}
    job: {type: ansible, parameters: {playbook: site.yml, extra_vars: {port: '${parameters.port}'}}}
  - {id: gate, kind: approval, needs: [roll], gate: {}}
";

/// The archive of a pack around one template.
pub fn archive(version: &str, template: &str) -> Bytes {
    let mut bundle = Bundle::default();
    let manifest = format!("name: p\nversion: {version}\ncontent: content\n");
    for (path, text) in [
        ("pack.yaml", manifest.as_str()),
        ("content/site.yml", "- hosts: all\n"),
        ("templates/t.yaml", template),
    ] {
        bundle.insert(path.to_owned(), false, text.as_bytes().to_vec()).unwrap();
    }
    Bytes::from(bundle.to_tar().unwrap())
}

/// A whole planning side for one test.
pub struct Harness {
    pub database: TestDatabase,
    pub app: PlanningApp,
    pub catalog: FakeCatalog,
    pub organization: OrganizationId,
    pub document: utoipa::openapi::OpenApi,
    pub base: String,
    pub minter: Minter,
}

impl Harness {
    /// With execution-plane at `execution`.
    pub async fn at(execution: &str) -> Self {
        let database = TestDatabase::create(DATABASE, &MIGRATOR).await;
        let catalog = FakeCatalog::default();
        let config = Config::new(database.urls().clone());
        let execution = Client::new(execution, None).unwrap();
        let app = PlanningApp::new(&config, Arc::new(catalog.clone()), execution).unwrap();
        let key = PrivateKey::generate();
        let trust = TrustStore::new([TrustedKey::new(key.public_key(), [Vouch::Issuer])]);
        let table = AccessTable::new(planning::rules());
        let routes = planning::routes().with_state(app.clone());
        let api = ApiBuilder::new("planning", "1", routes, table)
            .audit(app.database.clone())
            .build(trust)
            .unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let router = api.router;
        tokio::spawn(api_kit::serve(listener, router, CancellationToken::new()));
        Self {
            document: api.openapi,
            database,
            app,
            catalog,
            organization: OrganizationId::new_v7(),
            base,
            minter: Minter::new(key, "test"),
        }
    }

    /// With execution-plane switched off.
    pub async fn new() -> Self {
        Self::at("http://127.0.0.1:1").await
    }

    /// A client of some organization.
    pub fn client_of(&self, organization: OrganizationId, role: Role) -> ControlPlane {
        let token = self
            .minter
            .mint("person:ada", organization, [role], TimeDelta::minutes(5), Utc::now())
            .unwrap();
        let tokens = Arc::new(RotatingToken::new(token));
        ControlPlane::new(Client::new(&self.base, Some(tokens)).unwrap())
    }

    pub fn client(&self) -> ControlPlane {
        self.client_of(self.organization, Role::Operator)
    }

    /// Follows the organization's catalog as far as it is now.
    pub async fn catch_up(&self) {
        self.app.projection.follow(self.organization).await;
        loop {
            self.app.projection.step(self.organization).await.unwrap();
            let view = self
                .client()
                .projections(&PageQuery::default())
                .await
                .unwrap()
                .items
                .remove(0);
            if view.revision == self.catalog.with(|world| world.revision) {
                return;
            }
        }
    }

    /// Three hosts in three racks, and the pack that rolls out on them.
    pub async fn ready() -> Self {
        let harness = Self::new().await;
        for name in ["a", "b", "c"] {
            harness.catalog.tell(harness.organization, rack(name));
            harness
                .catalog
                .tell(harness.organization, host(&format!("web-{name}"), name, 1));
        }
        harness
            .client()
            .push_pack(archive("1.0.0", TEMPLATE), "first")
            .await
            .unwrap();
        harness.catch_up().await;
        harness
    }

    pub fn request(&self) -> PlanRequest {
        PlanRequest {
            pack: "p".into(),
            pack_version: None,
            template: "roll".into(),
            environment: "demo".into(),
            parameters: serde_json::Map::new(),
        }
    }
}
