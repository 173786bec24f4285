//! What each role's file says.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use contracts::Isolation;
use database::{DatabaseUrl, RolePasswords};
use identity::{PrivateKey, TrustStore, TrustedKey};
use secrecy::{ExposeSecret as _, SecretString};

use super::reader::{Faults, Reader};
use super::secret::resolve;
use crate::args::Service;
use crate::error::CliError;

/// A role's configuration, whole and valid.
pub enum RoleFile {
    Service(Box<ServiceSection>),
    Runner(Box<RunnerSection>),
}

/// One service.
pub struct ServiceSection {
    pub service: Service,
    pub listen: SocketAddr,
    pub database: DatabaseSection,
    pub trust: TrustStore,
    /// The service's own signing key: control-plane's for its calls, execution-plane's for runners' tokens.
    pub key: Option<PrivateKey>,
    /// Addresses of the services that this one calls.
    pub peers: BTreeMap<String, String>,
    pub blobs: Option<PathBuf>,
    pub lease_seconds: f64,
    pub grace_seconds: f64,
    /// Signs proofs.
    pub proof_key: Option<PrivateKey>,
}

/// How a service reaches its database: three roles, one server.
pub struct DatabaseSection {
    pub url: DatabaseUrl,
    pub passwords: RolePasswords,
}

/// One runner.
pub struct RunnerSection {
    pub config: execution_plane_runner::Config,
    pub enrolment_token: SecretString,
    pub isolation: Vec<Isolation>,
    pub secrets: SecretsSection,
}

/// Where a runner resolves secrets.
pub struct SecretsSection {
    pub age_file: Option<PathBuf>,
}

/// Reads `file` as the configuration of `role`: `resource-catalog`, `control-plane`, `execution-plane` or `runner`.
///
/// # Errors
/// Every fault at once.
pub fn role_of(role: &str, file: &Path) -> Result<RoleFile, CliError> {
    let shown = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| CliError::usage(format!("the configuration {shown} cannot be read: {error}")))?;
    let table: toml::Table = toml::from_str(&text).map_err(|error| {
        CliError::usage(format!("the configuration {shown} is not TOML")).fault("", error.to_string().trim().to_owned())
    })?;
    let faults = Faults::default();
    let reader = Reader::new(table, &faults);
    let role = match role {
        "resource-catalog" => service(Service::ResourceCatalog, reader),
        "control-plane" => service(Service::ControlPlane, reader),
        "execution-plane" => service(Service::ExecutionPlane, reader),
        "runner" => runner(reader),
        other => {
            return Err(CliError::usage(format!("there is no role {other:?}"))
                .hint("roles: resource-catalog, control-plane, execution-plane, runner"));
        }
    };
    if let Some(error) = faults.into_error(&shown) {
        return Err(error);
    }
    role.ok_or_else(|| CliError::usage(format!("the configuration {shown} is not usable")))
}

fn plain<T: FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn absolute(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_absolute() {
        Ok(path)
    } else {
        Err("this is an absolute path".to_owned())
    }
}

fn private_key(text: &str) -> Result<PrivateKey, String> {
    PrivateKey::load(&absolute(text)?).map_err(|error| error.to_string())
}

fn service(service: Service, reader: Reader<'_>) -> Option<RoleFile> {
    let listen = reader.parsed("listen", plain::<SocketAddr>);
    let database = database(&reader.section("database"));
    let identity = reader.section("identity");
    let trust = identity.parsed("trust", |text| trust(&absolute(text)?));
    let key = match service {
        Service::ResourceCatalog => None,
        _ => Some(identity.parsed("key", private_key)),
    };
    identity.finish();
    let mut section_peers = BTreeMap::new();
    if service == Service::ControlPlane {
        let peers = reader.section("services");
        for name in ["resource_catalog", "execution_plane"] {
            if let Some(address) = peers.parsed(name, |text| {
                client_kit::Client::new(text, None)
                    .map(|client| client.base().to_owned())
                    .map_err(|error| error.to_string())
            }) {
                section_peers.insert(name.to_owned(), address);
            }
        }
        peers.finish();
    }
    let blobs = (service == Service::ExecutionPlane).then(|| {
        let section = reader.section("blobs");
        let directory = section.parsed("directory", absolute);
        section.finish();
        directory
    });
    let (mut lease_seconds, mut grace_seconds) = (30.0, 15.0);
    if service == Service::ExecutionPlane {
        let leases = reader.section("leases");
        lease_seconds = leases.optional("seconds").unwrap_or(lease_seconds);
        grace_seconds = leases.optional("grace_seconds").unwrap_or(grace_seconds);
        if lease_seconds < 1.0 {
            leases.fault("seconds", "a lease lasts at least one second");
        }
        leases.finish();
    }
    let proof_key = (service == Service::ControlPlane).then(|| {
        let proof = reader.section("proof");
        let key = proof.parsed("key", private_key);
        proof.finish();
        key
    });
    reader.finish();
    Some(RoleFile::Service(Box::new(ServiceSection {
        service,
        listen: listen?,
        database: database?,
        trust: trust?,
        key: key.map_or(Some(None), |key| key.map(Some))?,
        peers: section_peers,
        blobs: blobs.map_or(Some(None), |directory| directory.map(Some))?,
        lease_seconds,
        grace_seconds,
        proof_key: proof_key.map_or(Some(None), |key| key.map(Some))?,
    })))
}

fn database(reader: &Reader<'_>) -> Option<DatabaseSection> {
    let url = reader.parsed("url", |text| {
        text.parse::<DatabaseUrl>().map_err(|error| error.to_string())
    });
    let password = |key: &str| reader.parsed_optional(key, resolve);
    let passwords = RolePasswords {
        owner: password("owner_password"),
        api: password("api_password"),
        worker: password("worker_password"),
    };
    Some(DatabaseSection { url: url?, passwords })
}

/// `[[key]] public_key = "…", vouches_for = ["issuer"]`.
fn trust(file: &Path) -> Result<TrustStore, String> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        key: Vec<TrustedKey>,
    }
    let text = std::fs::read_to_string(file).map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    let file: File = toml::from_str(&text).map_err(|error| error.to_string().trim().to_owned())?;
    if file.key.is_empty() {
        Err("it trusts no key".to_owned())
    } else {
        Ok(TrustStore::new(file.key))
    }
}

fn runner(reader: Reader<'_>) -> Option<RoleFile> {
    let service = reader.parsed("service", |text| {
        client_kit::Client::new(text, None)
            .map(|client| client.base().to_owned())
            .map_err(|error| error.to_string())
    });
    let name: Option<String> = reader.required("name");
    let state = reader.parsed("state_directory", absolute);
    let enrolment_token = reader.parsed("enrolment_token", resolve);
    let mut config = execution_plane_runner::Config::new(
        service.clone().unwrap_or_default(),
        name.clone().unwrap_or_default(),
        state.clone().unwrap_or_default(),
    );
    config.pools = reader.optional("pools").unwrap_or_default();
    config.environments = reader.optional("environments").unwrap_or_default();
    config.labels = reader.texts("labels");
    config.capacity = reader.optional("capacity").unwrap_or(config.capacity);
    if let Some(directory) = reader.parsed_optional("runtime_directory", absolute) {
        config.runtime_directory = directory;
    }
    config.ansible_directory = reader.parsed_optional("ansible_directory", absolute);
    if let Some(seconds) = reader.optional("stop_grace_seconds") {
        config.stop_grace_seconds = seconds;
    }
    let words: Vec<String> = reader
        .optional("isolation")
        .unwrap_or_else(|| vec!["sandbox".to_owned()]);
    let mut isolation = Vec::new();
    for word in &words {
        match word.as_str() {
            "sandbox" => isolation.push(Isolation::Sandbox),
            "process" => isolation.push(Isolation::Process),
            other => reader.fault(
                "isolation",
                format!("{other:?} is not a grade that this runner can give: sandbox, process"),
            ),
        }
    }
    let secrets = reader.section("secrets");
    let age_file = secrets.parsed_optional("age_file", absolute);
    secrets.finish();
    reader.finish();
    service?;
    name?;
    state?;
    Some(RoleFile::Runner(Box::new(RunnerSection {
        config,
        enrolment_token: enrolment_token?,
        isolation,
        secrets: SecretsSection { age_file },
    })))
}

impl DatabaseSection {
    /// The URL of one of the service's roles.
    pub fn url_of(&self, service: database::ServiceDatabase, role: database::ServiceRole) -> DatabaseUrl {
        let password = match role {
            database::ServiceRole::Owner => &self.passwords.owner,
            database::ServiceRole::Api => &self.passwords.api,
            database::ServiceRole::Worker => &self.passwords.worker,
        };
        self.url.with_user(
            &service.role(role),
            password.as_ref().map(|secret| secret.expose_secret()),
        )
    }
}
