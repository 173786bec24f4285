//! Five processes: PostgreSQL, three services, a runner. Each can be killed and started again.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use child_process::{DeathSignal, KeptChild, Launch};
use client_kit::Client;
use control_plane_api::ControlPlane;
use execution_plane_api::ExecutionPlane;
use fault_proxy::FaultProxy;
use identity::{BearerToken, RotatingToken, TokenSource};
use rustix::process::Signal;
use serde_json::Value;

use crate::other_version::OtherVersion;
use crate::platform_program;
use crate::wiring::{Link, made_another_version, made_breakable, shorten};

/// A process of the platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    Database,
    ResourceCatalog,
    ControlPlane,
    ExecutionPlane,
    Runner,
}

impl Role {
    /// All of them, in the order that they are usually started in.
    pub const ALL: [Self; 5] = [
        Self::Database,
        Self::ResourceCatalog,
        Self::ControlPlane,
        Self::ExecutionPlane,
        Self::Runner,
    ];

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::ResourceCatalog => "resource-catalog",
            Self::ControlPlane => "control-plane",
            Self::ExecutionPlane => "execution-plane",
            Self::Runner => "runner",
        }
    }

    /// The role whose failpoints begin with this word.
    #[must_use]
    pub fn of_failpoint(name: &str) -> Option<Self> {
        match name.split('.').next()? {
            "catalog" => Some(Self::ResourceCatalog),
            "control_plane" => Some(Self::ControlPlane),
            "execution" | "execution_plane" => Some(Self::ExecutionPlane),
            "runner" => Some(Self::Runner),
            _ => None,
        }
    }
}

/// How to run it.
#[derive(Debug, Clone)]
pub struct Options {
    pub lease_seconds: f64,
    pub grace_seconds: f64,
    /// How long the runner's token holds.
    pub token_seconds: f64,
    /// Most attempts at once on the runner.
    pub capacity: u32,
    /// Whether a connection that can be broken stands between the processes.
    pub breakable: bool,
    /// Whether everybody speaks with peers of another version.
    pub other_version: bool,
    /// Further lines for the config files: the role's word, and what is appended.
    pub further: Vec<(Role, String)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lease_seconds: 2.0,
            grace_seconds: 1.0,
            token_seconds: 3600.0,
            capacity: 16,
            breakable: false,
            other_version: false,
            further: Vec::new(),
        }
    }
}

/// A deployment on loopback, in a directory of its own that goes with it.
pub struct Deployment {
    directory: tempfile::TempDir,
    program: PathBuf,
    processes: Mutex<HashMap<Role, Arc<KeptChild>>>,
    twins: Mutex<Vec<KeptChild>>,
    links: HashMap<Link, FaultProxy>,
    other_versions: HashMap<Role, OtherVersion>,
    addresses: HashMap<Role, String>,
    /// Speaks with the rights of an operator and admin.
    pub control: ControlPlane,
    pub catalog: resource_catalog_api::Client,
    pub execution: ExecutionPlane,
    /// Of the private database: sockets, port, programs, password_file.
    pub database: Value,
}

/// How long anything may take before a test gives up on it. A bound against hanging, not a measure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) fn tokens(token: String) -> Arc<dyn TokenSource> {
    Arc::new(RotatingToken::new(BearerToken::new(token)))
}

impl Deployment {
    /// Starts the database and everything on it, and returns when all of it is ready.
    pub async fn start(options: &Options) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("platform-e2e-")
            .tempdir()
            .expect("a temporary directory");
        // PostgreSQL's lesser account passes through here.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o711)).expect("own directory");
        let program = platform_program();
        let data = directory.path().join("data");
        let launch = Launch::new(&program, DeathSignal::Terminate)
            .args(["database", "--port", "0", "-o", "json", "--data"])
            .arg(&data);
        let keeper = launched(launch, directory.path(), Role::Database);
        let database = ready_line(directory.path(), Role::Database, &keeper);
        shorten(&data.join("config"), options);
        let context: toml::Table =
            toml::from_str(&fs::read_to_string(data.join("context.toml")).expect("a context")).expect("TOML");
        let address = |key: &str| context[key].as_str().expect("an address").to_owned();
        let mut addresses = HashMap::from([
            (Role::ResourceCatalog, address("resource_catalog")),
            (Role::ControlPlane, address("control_plane")),
            (Role::ExecutionPlane, address("execution_plane")),
        ]);
        let links = if options.breakable {
            made_breakable(&data.join("config"), &addresses).await
        } else {
            HashMap::new()
        };
        let mut other_versions = HashMap::new();
        if options.other_version {
            other_versions = made_another_version(&data, &addresses).await;
            for (role, address) in &mut addresses {
                other_versions[role].address().clone_into(address);
            }
        }
        let token = tokens(
            fs::read_to_string(data.join("token"))
                .expect("a token")
                .trim()
                .to_owned(),
        );
        let client = |role| Client::new(&addresses[&role], Some(token.clone())).expect("an address");
        let (control, execution) = (
            ControlPlane::new(client(Role::ControlPlane)),
            ExecutionPlane::new(client(Role::ExecutionPlane)),
        );
        let catalog = resource_catalog_api::Client::new(&addresses[&Role::ResourceCatalog], Some(token.clone()))
            .expect("an address");
        let deployment = Self {
            directory,
            program,
            processes: Mutex::new(HashMap::from([(Role::Database, Arc::new(keeper))])),
            twins: Mutex::default(),
            links,
            other_versions,
            addresses,
            control,
            catalog,
            execution,
            database,
        };
        for role in &Role::ALL[1..] {
            deployment.launch(*role, &[]);
        }
        for role in &Role::ALL[1..4] {
            deployment.wait_ready(*role).await;
        }
        deployment
    }

    /// The directory of the deployment.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Its data directory.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// The address of a service.
    #[must_use]
    pub fn address(&self, role: Role) -> &str {
        &self.addresses[&role]
    }

    /// The breakable connection of a link.
    ///
    /// # Panics
    /// When the deployment was not started as a breakable one.
    #[must_use]
    pub fn link(&self, link: Link) -> &FaultProxy {
        &self.links[&link]
    }

    /// The peer of another version before a service.
    ///
    /// # Panics
    /// When the deployment was not started with such peers.
    #[must_use]
    pub fn other_version(&self, role: Role) -> &OtherVersion {
        &self.other_versions[&role]
    }

    /// Starts a role, with these variables.
    pub fn launch(&self, role: Role, variables: &[(&str, &str)]) {
        let config = self.data().join("config").join(format!("{}.toml", role.word()));
        let launch = match role {
            Role::Database => Launch::new(&self.program, DeathSignal::Terminate).args(self.database_arguments()),
            Role::Runner => Launch::new(&self.program, DeathSignal::Terminate)
                .args(["runner", "--config"])
                .arg(config),
            _ => Launch::new(&self.program, DeathSignal::Terminate)
                .args(["serve", role.word(), "--config"])
                .arg(config),
        };
        let launch = variables
            .iter()
            .fold(launch, |launch, (name, value)| launch.env(*name, *value));
        let child = launched(launch, self.path(), role);
        self.put(role, child);
    }

    pub(crate) fn put(&self, role: Role, child: KeptChild) {
        self.processes().insert(role, Arc::new(child));
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// How the database is started again.
    pub(crate) fn database_arguments(&self) -> Vec<OsString> {
        let port = self.first_port().to_string();
        let named = ["database", "-o", "json", "--port", &port, "--data"];
        let mut arguments: Vec<OsString> = named.iter().map(OsString::from).collect();
        arguments.push(self.data().into());
        arguments
    }

    /// Starts a second process of a service, on the same database, and says where it answers.
    pub async fn launch_twin(&self, role: Role) -> String {
        let config = self.data().join("config");
        let text = fs::read_to_string(config.join(format!("{}.toml", role.word()))).expect("a config file");
        let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = format!("http://{}", free.expect("a free port"));
        let own = self.address(role).trim_start_matches("http://");
        let file = config.join(format!("{}-twin.toml", role.word()));
        fs::write(&file, text.replacen(own, address.trim_start_matches("http://"), 1)).expect("own file");
        let launch = Launch::new(&self.program, DeathSignal::Terminate)
            .args(["serve", role.word(), "--config"])
            .arg(file);
        let twin = launched(launch, self.path(), role);
        self.twins.lock().unwrap_or_else(PoisonError::into_inner).push(twin);
        let client = Client::new(&address, None).expect("an address");
        let deadline = Instant::now() + PATIENCE;
        while client.get("/readyz").done().await.is_err() {
            assert!(
                Instant::now() < deadline,
                "the second {role:?} is not ready:\n{}",
                self.log(role)
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        address
    }

    fn processes(&self) -> MutexGuard<'_, HashMap<Role, Arc<KeptChild>>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn process(&self, role: Role) -> Arc<KeptChild> {
        self.processes().get(&role).expect("a role that was started").clone()
    }

    fn first_port(&self) -> u16 {
        self.address(Role::ResourceCatalog)
            .rsplit(':')
            .next()
            .and_then(|port| port.parse().ok())
            .expect("a port")
    }

    /// Waits until a service says that it is ready.
    pub async fn wait_ready(&self, role: Role) {
        let client = Client::new(self.address(role), None).expect("an address");
        let deadline = Instant::now() + PATIENCE;
        while client.get("/readyz").done().await.is_err() {
            assert!(
                self.is_alive(role),
                "{role:?} ended while starting:\n{}",
                self.log(role)
            );
            assert!(Instant::now() < deadline, "{role:?} is not ready:\n{}", self.log(role));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Whether the process of a role runs.
    #[must_use]
    pub fn is_alive(&self, role: Role) -> bool {
        self.processes()
            .get(&role)
            .is_some_and(|child| child.exit_status().is_none())
    }

    /// The pid of a role's process.
    #[must_use]
    pub fn pid(&self, role: Role) -> u32 {
        self.process(role).pid()
    }

    /// Sends a signal to the process of a role.
    pub fn signal(&self, role: Role, signal: Signal) {
        self.process(role).signal(signal).expect("own child");
    }

    /// Kills a role outright and waits until it is gone.
    pub async fn kill(&self, role: Role) {
        let child = self.process(role);
        // One that has died meanwhile is as dead as it should be.
        let _ = child.signal(Signal::KILL);
        child.exited().await;
    }

    /// Kills the PostgreSQL server itself, under its keeper, which starts it anew.
    pub fn kill_postgres(&self) {
        let pid_file = self.data().join("postgres/data/postmaster.pid");
        let text = fs::read_to_string(pid_file).expect("a running server");
        let pid: i32 = text.lines().next().and_then(|line| line.parse().ok()).expect("a pid");
        let pid = rustix::process::Pid::from_raw(pid).expect("a pid");
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }

    /// Waits until a role's process has ended by itself.
    pub async fn ended(&self, role: Role) {
        self.process(role).exited().await;
    }

    /// What a role wrote to its output so far.
    #[must_use]
    pub fn log(&self, role: Role) -> String {
        fs::read_to_string(log_file(self.path(), role)).unwrap_or_default()
    }

    /// Stops everything in order.
    pub async fn stop(&self) {
        self.twins.lock().unwrap_or_else(PoisonError::into_inner).clear();
        for role in Role::ALL.iter().rev() {
            let child = self.processes().remove(role);
            if let Some(child) = child {
                let _ = child.signal(Signal::TERM);
                if tokio::time::timeout(PATIENCE, child.exited()).await.is_err() {
                    let _ = child.signal(Signal::KILL);
                }
            }
        }
    }
}

fn log_file(directory: &Path, role: Role) -> PathBuf {
    directory.join(format!("{}.log", role.word()))
}

pub(crate) fn launched(launch: Launch, directory: &Path, role: Role) -> KeptChild {
    let file = File::options()
        .create(true)
        .append(true)
        .open(log_file(directory, role))
        .expect("a log file");
    let errors = file.try_clone().expect("a second handle");
    launch
        .stdout(file)
        .stderr(errors)
        .spawn()
        .unwrap_or_else(|error| panic!("{role:?} does not start: {error}"))
}

fn ready_line(directory: &Path, role: Role, child: &KeptChild) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let text = fs::read_to_string(log_file(directory, role)).unwrap_or_default();
        let ready = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .find(|value| value["ready"] == true);
        if let Some(ready) = ready {
            return ready;
        }
        assert!(child.exit_status().is_none(), "{role:?} ended while starting:\n{text}");
        assert!(Instant::now() < deadline, "{role:?} is not ready:\n{text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
