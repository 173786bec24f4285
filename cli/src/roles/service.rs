//! One service from its configuration: the adapters it is given, its database, its server. The only place
//! that knows which adapter stands behind which port.

use std::sync::Arc;

use api_kit::serve;
use axum::Router;
use blobs_directory::DirectoryBlobs;
use chrono::TimeDelta;
use client_kit::Client;
use database::{Database, PoolSizes, ServiceDatabase, ServiceRole, ServiceUrls, migrate};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use identity::{Minter, PrivateKey, ServiceTokens, TokenSource};
use runtime_embedded::EmbeddedRuntime;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::args::Service;
use crate::config::ServiceSection;
use crate::error::CliError;
use crate::exit::Exit;

/// A service, ready to serve.
pub struct Assembled {
    listener: TcpListener,
    router: Router,
    work: Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, ()> + Send>,
}

/// The database of a service.
pub fn database_of(service: &str) -> ServiceDatabase {
    match service {
        "resource_catalog" => resource_catalog_server::DATABASE,
        "control_plane" => control_plane_server::DATABASE,
        _ => execution_plane_server::DATABASE,
    }
}

fn failed(what: &str) -> impl Fn(&dyn std::error::Error) -> CliError {
    let what = what.to_owned();
    move |error| CliError::new(Exit::Internal, format!("{what}: {}", kernel::with_causes(error)))
}

/// Binds the address, migrates the database where that is allowed, and puts the service together.
///
/// # Errors
/// Says which part fails, and why.
pub async fn assemble(section: ServiceSection) -> Result<Assembled, CliError> {
    let listener = TcpListener::bind(section.listen)
        .await
        .map_err(|error| CliError::usage(format!("{} cannot be listened on: {error}", section.listen)))?;
    match section.service {
        Service::ResourceCatalog => catalog(section, listener).await,
        Service::ControlPlane => control(section, listener).await,
        Service::ExecutionPlane => execution(section, listener).await,
    }
}

fn urls(section: &ServiceSection, service: ServiceDatabase) -> ServiceUrls {
    let of = |role| section.database.url_of(service, role);
    ServiceUrls {
        owner: of(ServiceRole::Owner),
        api: of(ServiceRole::Api),
        worker: of(ServiceRole::Worker),
    }
}

async fn catalog(section: ServiceSection, listener: TcpListener) -> Result<Assembled, CliError> {
    let mut config =
        resource_catalog_server::Config::new(urls(&section, resource_catalog_server::DATABASE), section.trust);
    config.feed_retention = section.feed_retention;
    config.metrics_for = section.metrics_for;
    let service = resource_catalog_server::build(config)
        .await
        .map_err(|error| failed("resource-catalog does not start")(&error))?;
    Ok(Assembled {
        listener,
        router: service.router(),
        work: Box::new(move |shutdown| async move { service.run(shutdown).await }.boxed()),
    })
}

async fn execution(section: ServiceSection, listener: TcpListener) -> Result<Assembled, CliError> {
    let failed = failed("execution-plane does not start");
    let urls = urls(&section, execution_plane_server::DATABASE);
    migrate(&urls.owner, &execution_plane_server::MIGRATOR)
        .await
        .map_err(|error| failed(&error))?;
    let sizes = PoolSizes::default();
    let (Some(key), Some(directory)) = (section.key, section.blobs) else {
        return Err(CliError::new(
            Exit::Internal,
            "execution-plane needs a key and a blob directory",
        ));
    };
    let blobs = DirectoryBlobs::open(directory).await.map_err(|error| failed(&error))?;
    let dependencies = execution_plane_server::Dependencies {
        api: Database::open(&urls.api, "execution-plane-api", sizes).map_err(|error| failed(&error))?,
        worker: Database::open(&urls.worker, "execution-plane-worker", sizes).map_err(|error| failed(&error))?,
        blobs: Arc::new(blobs),
        trust: section.trust,
        runner_key: key,
    };
    let mut config = execution_plane_server::Config::default();
    config.lease.lease = seconds(section.lease_seconds);
    config.lease.grace = seconds(section.grace_seconds);
    config.lease.comeback = seconds(section.lease_seconds);
    config.runner_token = seconds(section.token_seconds);
    let rules = section.secret_rules.into_iter();
    config.secrets = execution_plane_server::SecretRules::of(rules.map(|rule| (rule.organization, rule.prefix)));
    config.feed_retention = section.feed_retention;
    config.metrics_for = section.metrics_for;
    let service = execution_plane_server::build(config, dependencies)
        .await
        .map_err(|error| failed(&error))?;
    Ok(Assembled {
        listener,
        router: service.router(),
        work: Box::new(move |shutdown| async move { service.run(shutdown).await }.boxed()),
    })
}

fn seconds(count: f64) -> TimeDelta {
    // A configuration says at most days; microseconds of that fit.
    TimeDelta::microseconds((count * 1_000_000.0) as i64)
}

impl Assembled {
    /// Serves and works until `shutdown`.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), CliError> {
        let work = (self.work)(shutdown.clone());
        let served = serve(self.listener, self.router, shutdown);
        let (served, ()) = tokio::join!(served, work);
        served.map_err(|error| CliError::new(Exit::Internal, format!("serving failed: {error}")))
    }
}

/// The platform's proof key as the domain asks for it.
struct ProofKey(PrivateKey);

impl control_plane_proof::Signer for ProofKey {
    fn public_key(&self) -> [u8; 32] {
        self.0.public_key().to_bytes()
    }

    fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

async fn control(section: ServiceSection, listener: TcpListener) -> Result<Assembled, CliError> {
    let failed = failed("control-plane does not start");
    let urls = urls(&section, control_plane_server::DATABASE);
    migrate(&urls.owner, &control_plane_server::MIGRATOR)
        .await
        .map_err(|error| failed(&error))?;
    let (Some(key), Some(proof_key)) = (section.key, section.proof_key) else {
        return Err(CliError::new(
            Exit::Internal,
            "control-plane needs its own key and a proof key",
        ));
    };
    let tokens: Arc<dyn TokenSource> = Arc::new(ServiceTokens::new(Minter::new(key, "control-plane"), "control-plane"));
    let peer = |name: &str| Client::new(section.peers.get(name).map_or("", String::as_str), Some(tokens.clone()));
    let (catalog, execution) = (peer("resource_catalog")?, peer("execution_plane")?);
    let mut config = control_plane_server::Config::new(urls);
    config.feed_retention = section.feed_retention;
    config.metrics_for = section.metrics_for;
    let events = Arc::new(events_feed::FeedSource::new(catalog.clone()));
    let runtime = Arc::new(EmbeddedRuntime::new(runtime_embedded::Options::default()));
    let deps = control_plane_server::Deps {
        trust: section.trust,
        runtime,
        catalog,
        execution,
        signer: Arc::new(ProofKey(proof_key)),
    };
    let service = control_plane_server::build(&config, deps, events, Vec::new()).map_err(|error| failed(&error))?;
    Ok(Assembled {
        listener,
        router: service.router(),
        work: Box::new(move |shutdown| async move { service.run(shutdown).await }.boxed()),
    })
}
