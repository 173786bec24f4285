//! A whole service on a database of its own, and what tests send to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{TimeDelta, Utc};
use contracts::{
    CatalogProjectionEvent, Changes, EvidenceRef, EvidenceResult, EvidenceType, LifecycleStatus, ProvidedCapabilities,
    ResourceUpdateCommand,
};
use database::testing::TestDatabase;
use identity::{Minter, PrivateKey, Role, RotatingToken, TrustStore, TrustedKey, Vouch};
use kernel::id::{CommandId, OperationId, OrganizationId};
use kernel::{DottedName, ResourceId};
use resource_catalog_api::{ApplyCapabilityDefinition, ApplyResource, Client, FeedQuery, Resource};
use resource_catalog_server::{Config, DATABASE, MIGRATOR, build};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// A running catalog. Stopped by [`Catalog::stop`], or when dropped.
pub struct Catalog {
    pub database: Arc<TestDatabase>,
    pub base: String,
    pub organization: OrganizationId,
    key: PrivateKey,
    shutdown: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl Catalog {
    pub async fn start() -> Self {
        let database = Arc::new(TestDatabase::create(DATABASE, &MIGRATOR).await);
        Self::start_on(database, OrganizationId::new_v7(), PrivateKey::generate(), true).await
    }

    async fn start_on(database: Arc<TestDatabase>, organization: OrganizationId, key: PrivateKey, works: bool) -> Self {
        let trust = TrustStore::new([TrustedKey::new(key.public_key(), [Vouch::Issuer])]);
        let service = build(Config::new(database.urls().clone(), trust)).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let shutdown = CancellationToken::new();
        let (router, stop) = (service.router(), shutdown.clone());
        let serving = tokio::spawn(async move { api_kit::serve(listener, router, stop).await.unwrap() });
        let mut tasks = vec![serving];
        if works {
            tasks.push(tokio::spawn(service.run(shutdown.clone())));
        }
        Self {
            database,
            base,
            organization,
            key,
            shutdown,
            tasks,
        }
    }

    /// Another process on the same database.
    pub async fn twin(&self) -> Self {
        Self::start_on(Arc::clone(&self.database), self.organization, self.key.clone(), true).await
    }

    /// A process on the same database that answers requests and does nothing beside.
    pub async fn serving_only(&self) -> Self {
        Self::start_on(Arc::clone(&self.database), self.organization, self.key.clone(), false).await
    }

    /// Stops this process and starts another on the same database.
    pub async fn restart(mut self) -> Self {
        self.stop().await;
        self.twin().await
    }

    pub async fn stop(&mut self) {
        self.shutdown.cancel();
        for task in self.tasks.drain(..) {
            task.await.unwrap();
        }
    }

    pub fn minter(&self) -> Minter {
        Minter::new(self.key.clone(), "test")
    }

    pub fn client_of(&self, organization: OrganizationId, subject: &str, roles: &[Role]) -> Client {
        Client::from(self.kit_of(organization, subject, roles))
    }

    /// A client for requests that the typed one cannot send.
    pub fn kit(&self, roles: &[Role]) -> client_kit::Client {
        self.kit_of(self.organization, "person:tester", roles)
    }

    fn kit_of(&self, organization: OrganizationId, subject: &str, roles: &[Role]) -> client_kit::Client {
        let lifetime = TimeDelta::minutes(30);
        let token = self
            .minter()
            .mint(subject, organization, roles.to_vec(), lifetime, Utc::now())
            .unwrap();
        client_kit::Client::new(&self.base, Some(Arc::new(RotatingToken::new(token)))).unwrap()
    }

    /// Someone who writes resources.
    pub fn operator(&self) -> Client {
        self.client_of(self.organization, "person:op", &[Role::Operator])
    }

    /// control-plane.
    pub fn control(&self) -> Client {
        self.client_of(self.organization, "service:control-plane", &[Role::Service])
    }

    /// Defines `web.http` and `os.linux`(`.debian`), as most tests need them.
    pub async fn define(&self) {
        let operator = self.operator();
        for (name, parent) in [
            ("os.linux", None),
            ("os.linux.debian", Some("os.linux")),
            ("web.http", None),
        ] {
            let definition = ApplyCapabilityDefinition {
                parent: parent.map(dotted),
                description: String::new(),
                attribute_schema: None,
            };
            operator
                .apply_capability_definition(&dotted(name), &definition, None)
                .await
                .unwrap();
        }
    }

    /// Reads the whole feed, waiting until it has `count` events or more.
    pub async fn events(&self, count: usize) -> Vec<CatalogProjectionEvent> {
        let client = self.operator();
        let mut events = Vec::new();
        let mut after = 0;
        while events.len() < count {
            let query = FeedQuery {
                after,
                limit: Some(1_000),
                wait_seconds: Some(20),
            };
            let page = client.feed(&query).await.unwrap();
            assert!(!page.events.is_empty(), "{} of {count} events came", events.len());
            events.extend(page.events);
            after = page.next_after;
        }
        events
    }
}

impl Drop for Catalog {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

pub fn dotted(text: &str) -> DottedName {
    text.parse().unwrap()
}

pub fn id(text: &str) -> ResourceId {
    text.parse().unwrap()
}

pub fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

pub fn node() -> ApplyResource {
    ApplyResource {
        resource_type: dotted("compute.node"),
        environment: Some("demo".into()),
        labels: BTreeMap::from([("rack".into(), "a".into())]),
        annotations: BTreeMap::new(),
        lifecycle_status: Some(LifecycleStatus::Running),
        desired_state: map(json!({"os": "debian"})),
        connection: map(json!({"address": "127.0.0.11", "port": 22, "host_keys": ["ssh-ed25519 AAAA"]})),
        edges: None,
    }
}

pub async fn put(client: &Client, name: &str, resource: &ApplyResource) -> Resource {
    client.apply_resource(&id(name), resource, None).await.unwrap().body
}

pub fn evidence(capability: &str, result: EvidenceResult) -> EvidenceRef {
    EvidenceRef {
        id: Uuid::now_v7(),
        evidence_type: EvidenceType::ApiCheck,
        capability: dotted(capability),
        result,
        source_ref: "log://attempt/1".into(),
        observed_at: Utc::now(),
        name: None,
        resource_id: None,
        attempt_id: None,
        sha256: None,
    }
}

pub fn command(resource: &str, expected_version: i64, changes: Changes) -> ResourceUpdateCommand {
    ResourceUpdateCommand {
        command_id: CommandId::new_v7(),
        operation_id: OperationId::new_v7(),
        resource_id: id(resource),
        expected_version,
        changes,
        evidence: Vec::new(),
        uid: None,
        traceparent: None,
    }
}

pub fn observing(patch: Value) -> Changes {
    Changes {
        observed_state_patch: Some(patch),
        ..Changes::default()
    }
}

/// A command that adds `capability`, with evidence that passed for it.
pub fn providing(resource: &str, expected_version: i64, capability: &str) -> ResourceUpdateCommand {
    let changes = Changes {
        provided_capabilities: Some(ProvidedCapabilities {
            add: vec![dotted(capability)],
            ..ProvidedCapabilities::default()
        }),
        ..Changes::default()
    };
    ResourceUpdateCommand {
        evidence: vec![evidence(capability, EvidenceResult::Passed)],
        ..command(resource, expected_version, changes)
    }
}
