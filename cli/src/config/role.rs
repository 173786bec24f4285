//! What each role's file says.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use api_kit::MetricsFor;
use database::{DatabaseUrl, RolePasswords};
use execution_plane_runner::SecretRule;
use identity::{PrivateKey, TrustStore};
use secrecy::ExposeSecret as _;

use super::reader::{Faults, Reader};
use super::runner::{RunnerSection, runner};
use super::secret::resolve;
use super::secret_rules::secret_rules;
use super::trust::trust;
use crate::args::Service;
use crate::error::CliError;

/// A week: as long as a reader of a feed may be away without beginning anew.
const DEFAULT_RETENTION_HOURS: u32 = 7 * 24;

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
    /// How long a runner's token holds.
    pub token_seconds: f64,
    /// How long the service's feed keeps what everybody has read.
    pub feed_retention: Duration,
    /// Who may read the service's metrics without a token.
    pub metrics_for: MetricsFor,
    /// Which secrets jobs may name.
    pub secret_rules: Vec<SecretRule>,
    /// Signs proofs.
    pub proof_key: Option<PrivateKey>,
}

/// How a service reaches its database: three roles, one server.
pub struct DatabaseSection {
    pub url: DatabaseUrl,
    pub passwords: RolePasswords,
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
    let read = of_table(role, table.clone(), &faults)?;
    let unknown = faults.unknown();
    if let Some(mut error) = faults.into_error(&shown) {
        if let Some(other) = meant_for(role, &table, unknown) {
            error.message = format!("the configuration {shown} is not usable as {role}: it looks like one of {other}");
        }
        return Err(error);
    }
    read.ok_or_else(|| CliError::usage(format!("the configuration {shown} is not usable")))
}

/// Every role that a file can be of.
const ROLES: [&str; 4] = ["resource-catalog", "control-plane", "execution-plane", "runner"];

fn of_table(role: &str, table: toml::Table, faults: &Faults) -> Result<Option<RoleFile>, CliError> {
    let reader = Reader::new(role, table, faults);
    Ok(match role {
        "resource-catalog" => service(Service::ResourceCatalog, reader),
        "control-plane" => service(Service::ControlPlane, reader),
        "execution-plane" => service(Service::ExecutionPlane, reader),
        "runner" => runner(reader),
        other => {
            return Err(
                CliError::usage(format!("there is no role {other:?}")).hint(format!("roles: {}", ROLES.join(", ")))
            );
        }
    })
}

/// The role whose file this seems to be: `role` does not know `unknown` of its keys, another knows most of those.
fn meant_for(role: &str, table: &toml::Table, unknown: usize) -> Option<&'static str> {
    let unknown_to = |other: &str| {
        let faults = Faults::default();
        of_table(other, table.clone(), &faults).map_or(usize::MAX, |_| faults.unknown())
    };
    let others = ROLES.into_iter().filter(|other| *other != role);
    let (other, left) = others
        .map(|other| (other, unknown_to(other)))
        .min_by_key(|(_, left)| *left)?;
    (left < unknown.div_ceil(2)).then_some(other)
}

fn plain<T: FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

pub(super) fn absolute(text: &str) -> Result<PathBuf, String> {
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
    let (mut lease_seconds, mut grace_seconds, mut token_seconds) = (30.0, 15.0, 12.0 * 3600.0);
    if service == Service::ExecutionPlane {
        let leases = reader.section("leases");
        lease_seconds = leases.optional("seconds").unwrap_or(lease_seconds);
        grace_seconds = leases.optional("grace_seconds").unwrap_or(grace_seconds);
        token_seconds = leases.optional("token_seconds").unwrap_or(token_seconds);
        if !(5.0..=30.0 * 86_400.0).contains(&token_seconds) {
            leases.fault("token_seconds", "a runner's token holds for 5 seconds to 30 days");
        }
        if !lease_seconds.is_finite() || lease_seconds < 1.0 {
            leases.fault("seconds", "a lease lasts at least one second");
        }
        if !grace_seconds.is_finite() || grace_seconds < 0.0 {
            leases.fault("grace_seconds", "this is a number of seconds from 0");
        }
        leases.finish();
    }
    let feed = reader.section("feed");
    let retention_hours: u32 = feed.optional("retention_hours").unwrap_or(DEFAULT_RETENTION_HOURS);
    if retention_hours == 0 {
        feed.fault("retention_hours", "the feed keeps events for at least one hour");
    }
    feed.finish();
    let secret_rules = match service {
        Service::ExecutionPlane => secret_rules(&reader),
        _ => Vec::new(),
    };
    let proof_key = (service == Service::ControlPlane).then(|| {
        let proof = reader.section("proof");
        let key = proof.parsed("key", private_key);
        proof.finish();
        key
    });
    let metrics_for = match reader.optional::<String>("metrics").as_deref() {
        None | Some("loopback") => MetricsFor::Loopback,
        Some("anyone") => MetricsFor::Anyone,
        Some(_) => {
            reader.fault("metrics", "this is \"loopback\" or \"anyone\"");
            MetricsFor::Loopback
        }
    };
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
        token_seconds,
        feed_retention: Duration::from_hours(retention_hours.into()),
        metrics_for,
        secret_rules,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(role: &str, text: &str) -> CliError {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("role.toml");
        std::fs::write(&file, text).unwrap();
        match role_of(role, &file) {
            Ok(_) => panic!("this is no usable configuration"),
            Err(error) => error,
        }
    }

    #[test]
    fn the_file_of_another_role_is_told_as_such() {
        let runner = "service = \"http://127.0.0.1:1\"\nname = \"a\"\n[secrets]\nage_file = \"/a\"\n";
        assert!(
            check("control-plane", runner)
                .message
                .ends_with("it looks like one of runner")
        );
        let catalog = "listen = \"127.0.0.1:1\"\n[database]\nurl = \"postgres://a@/a\"\n";
        let error = check("runner", catalog);
        assert!(
            error.message.ends_with("it looks like one of resource-catalog"),
            "{error}"
        );
    }

    #[test]
    fn one_unknown_key_is_no_sign_of_another_role() {
        let error = check("runner", "naem = \"a\"\n");
        assert!(!error.message.contains("looks like"), "{error}");
        assert!(error.faults.iter().any(|fault| fault.place == "naem"));
    }
}
