//! A runner in this process, its service, and the jobs that tests give it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use contracts::JobSpec;
use execution_plane_api::{Lease, LeasedContent};
use execution_plane_runner::{Config, Deps};
use identity::BearerToken;
use isolation_bubblewrap::{Bubblewrap, BubblewrapConfig};
use kernel::Sha256Digest;
use kernel::id::AttemptId;
use secrets_age::AgeSecretStore;
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::plane::Plane;

pub const LOGIN_KEY: &str = "vault://ssh/test#private_key";

pub struct Runner {
    pub plane: Plane,
    pub secrets: AgeSecretStore,
    pub shutdown: CancellationToken,
    pub directory: tempfile::TempDir,
    task: Option<JoinHandle<()>>,
}

/// Where ansible-core is: by `PLATFORM_ANSIBLE_DIR`, in the set-up's cache, or in PATH.
pub fn ansible_directory() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
    let named = std::env::var_os("PLATFORM_ANSIBLE_DIR").map(PathBuf::from);
    let cached = cache.map(|cache| cache.join("platform-core/ansible/bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    named
        .into_iter()
        .chain(cached)
        .chain(std::env::split_paths(&path))
        .find(|place| place.join("ansible-playbook").exists())
        .expect("ansible-playbook is needed for this test: set PLATFORM_ANSIBLE_DIR to its directory, or run make test")
}

pub fn config(plane: &Plane, directory: &Path) -> Config {
    let mut config = Config::new(plane.url.clone(), "test-runner", directory.join("state"));
    config.stop_grace_seconds = 1.0;
    config.drain_seconds = 0.5;
    config.readable_logs = vec![directory.join("logs")];
    config
}

pub async fn deps(secrets: &AgeSecretStore) -> Deps {
    let sandbox = Bubblewrap::probe(BubblewrapConfig::default())
        .await
        .expect("bubblewrap is needed for this test (Debian: apt-get install bubblewrap)");
    Deps {
        enrolment_token: BearerToken::new("enrolment"),
        secrets: Arc::new(secrets.clone()),
        isolation: vec![Arc::new(sandbox)],
    }
}

impl Runner {
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub async fn start_with(adjust: impl FnOnce(&mut Config)) -> Self {
        let mut runner = Self::prepare().await;
        runner.begin(adjust).await;
        runner
    }

    /// Everything but the runner itself.
    pub async fn prepare() -> Self {
        let plane = Plane::start().await;
        let directory = tempfile::tempdir().unwrap();
        let secrets = AgeSecretStore::init(&directory.path().join("secrets.age")).unwrap();
        Self {
            plane,
            secrets,
            shutdown: CancellationToken::new(),
            directory,
            task: None,
        }
    }

    pub async fn begin(&mut self, adjust: impl FnOnce(&mut Config)) {
        let mut config = config(&self.plane, self.directory.path());
        adjust(&mut config);
        let deps = deps(&self.secrets).await;
        let running = execution_plane_runner::run(config, deps, self.shutdown.clone());
        self.task = Some(tokio::spawn(async move {
            running.await.expect("the runner goes on until it is told to end")
        }));
    }

    pub async fn end(&mut self) {
        self.shutdown.cancel();
        self.task.take().unwrap().await.unwrap();
    }

    /// The attempts whose directories are still there.
    pub fn kept(&self) -> usize {
        std::fs::read_dir(self.directory.path().join("state/attempts"))
            .unwrap()
            .count()
    }

    pub fn put_key(&self, key: &str) {
        self.secrets
            .put("ssh/test", "private_key", key.as_bytes(), None)
            .unwrap();
    }

    pub fn submit(&self, job: Job) -> AttemptId {
        let (lease, content) = job.lease();
        let id = lease.attempt_id;
        self.plane.submit(lease, content);
        id
    }
}

/// A job to be.
pub struct Job {
    spec: Value,
    content: Option<Vec<u8>>,
    policy: Option<Value>,
    cancelled: bool,
}

impl Job {
    pub fn new(job_type: &str, parameters: Value) -> Self {
        let spec = json!({
            "operation_id": uuid::Uuid::now_v7(), "plan_node_id": "node-1", "attempt_id": uuid::Uuid::now_v7(),
            "job_type": job_type, "runner": {"name": "test-runner", "isolation": "sandbox"},
            "target": {"resources": [], "environment": "demo"},
            "inputs": {"parameters": parameters, "capabilities": [], "artifacts": [], "secrets": []},
            "output_contract": {"capabilities": [], "artifacts": [], "evidence": []},
            "controls": {"timeout_seconds": 120},
        });
        Self {
            spec,
            content: None,
            policy: None,
            cancelled: false,
        }
    }

    pub fn id(&self) -> AttemptId {
        serde_json::from_value(self.spec["attempt_id"].clone()).unwrap()
    }

    /// Sets the value at a JSON Pointer.
    pub fn with(mut self, pointer: &str, value: Value) -> Self {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        self.spec
            .pointer_mut(parent)
            .unwrap()
            .as_object_mut()
            .unwrap()
            .insert(key.to_owned(), value);
        self
    }

    pub fn on(self, targets: Vec<Value>) -> Self {
        self.with("/target/resources", targets.into())
            .with("/inputs/secrets", json!([{"secret_ref": LOGIN_KEY, "name": "ssh_key"}]))
    }

    pub fn content(mut self, files: &[(&str, &str)]) -> Self {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, text) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o755);
            builder.append_data(&mut header, path, text.as_bytes()).unwrap();
        }
        let bytes = builder.into_inner().unwrap();
        self.spec["content"] = json!({"sha256": Sha256Digest::of(&bytes)});
        self.content = Some(bytes);
        self
    }

    pub fn policy(mut self, body: Value) -> Self {
        self.policy = Some(body);
        self.with("/controls/allowed_commands_ref", "policy/test".into())
    }

    pub fn cancelled(mut self) -> Self {
        self.cancelled = true;
        self
    }

    fn lease(self) -> (Lease, Option<Vec<u8>>) {
        let job: JobSpec = serde_json::from_value(self.spec).unwrap();
        let policy = self
            .policy
            .map(|body| json!({"name": "test", "version": 1, "body": body}));
        let lease = Lease {
            attempt_id: job.attempt_id,
            epoch: 7,
            deadline_in_seconds: 30.0,
            cancel_requested: self.cancelled,
            command_policy: policy.map(|policy| serde_json::from_value(policy).unwrap()),
            content: job.content.as_ref().map(|content| LeasedContent {
                sha256: content.sha256,
                size_bytes: 0,
            }),
            job,
        };
        (lease, self.content)
    }
}

pub fn outputs(result: &contracts::ExecutionResult) -> Map<String, Value> {
    result.outputs.clone().unwrap_or_default()
}
