//! Real hosts, registered in the catalog of a deployment.

use chrono::Utc;
use contracts::{EvidenceRef, EvidenceResult, EvidenceType, LifecycleStatus};
use demo_hosts::{DATA_VOLUME, Host, Hosts, Options};
use kernel::ResourceId;
use resource_catalog_api::{ApplyCapabilityDefinition, ApplyResource, ObserveCapability};
use serde_json::{Value, json};

use crate::Deployment;

/// Where the hosts' login key is kept.
pub const LOGIN_KEY: &str = "vault://ssh/hosts";

/// Running hosts.
pub struct World {
    pub hosts: Hosts,
}

impl World {
    /// Starts `count` hosts, registers them in the environment `test`, and puts their key into the secret store.
    pub async fn start(deployment: &Deployment, count: usize) -> Self {
        let options = Options::web(deployment.path().join("hosts"), count);
        let hosts = tokio::task::spawn_blocking(move || Hosts::start(&options))
            .await
            .expect("no panic")
            .expect("hosts start");
        let world = Self { hosts };
        for name in ["os.linux", "site.marked"] {
            let definition = ApplyCapabilityDefinition {
                parent: None,
                description: String::new(),
                attribute_schema: None,
            };
            let name = name.parse().expect("a name");
            deployment
                .catalog
                .apply_capability_definition(&name, &definition, None)
                .await
                .expect("a capability definition");
        }
        for host in &world.hosts.hosts {
            world.register(deployment, host).await;
        }
        let key = world.hosts.private_key.display().to_string();
        deployment.platform(&[
            "secret",
            "put",
            LOGIN_KEY,
            "--from",
            &key,
            "--data",
            &deployment.data().display().to_string(),
        ]);
        world
    }

    /// The resource id of a host.
    #[must_use]
    pub fn resource(host: &Host) -> ResourceId {
        format!("node/{}", host.name).parse().expect("an id")
    }

    async fn register(&self, deployment: &Deployment, host: &Host) {
        let connection = json!({"address": host.address.to_string(), "port": host.port, "user": host.user, "host_keys": [host.host_key]});
        let Value::Object(connection) = connection else {
            unreachable!("an object")
        };
        let resource = ApplyResource {
            resource_type: "compute.node".parse().expect("a name"),
            environment: Some("test".into()),
            labels: [("host".to_owned(), host.name.clone())].into(),
            annotations: Default::default(),
            lifecycle_status: Some(LifecycleStatus::Running),
            desired_state: Default::default(),
            connection,
            edges: None,
        };
        let id = Self::resource(host);
        deployment
            .catalog
            .apply_resource(&id, &resource, None)
            .await
            .expect("a resource");
        let evidence = EvidenceRef {
            id: uuid::Uuid::now_v7(),
            evidence_type: EvidenceType::CommandCheck,
            capability: "os.linux".parse().expect("a name"),
            result: EvidenceResult::Passed,
            source_ref: "ssh: uname -s".into(),
            observed_at: Utc::now(),
            name: None,
            resource_id: Some(id.clone()),
            attempt_id: None,
            sha256: None,
        };
        let seen = ObserveCapability {
            attributes: Default::default(),
            evidence: vec![evidence],
        };
        let capability = "os.linux".parse().expect("a name");
        deployment
            .catalog
            .observe_capability(&id, &capability, &seen)
            .await
            .expect("an observation");
    }

    /// Writes a file on a host's data volume, past the platform.
    pub fn write(&self, host: usize, file: &str, text: &str) {
        let path = self.hosts.hosts[host].inside(&format!("{DATA_VOLUME}/{file}"));
        std::fs::write(path, text).expect("a data volume");
    }

    /// How many lines a file on a host's data volume has: counted on the target, outside the platform.
    #[must_use]
    pub fn lines(&self, host: usize, file: &str) -> usize {
        let path = self.hosts.hosts[host].inside(&format!("{DATA_VOLUME}/{file}"));
        std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
    }
}
