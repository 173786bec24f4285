//! The whole platform in one process: a private PostgreSQL, three services that talk to one another over
//! authenticated HTTP as they would apart, and a runner as a process of its own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use client_kit::Client;
use database::{RolePasswords, provision};
use postgres_embedded::{Config as PostgresConfig, Server};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::kept_runner::KeptRunner;
use super::layout::{Layout, SERVICES};
use super::service;
use crate::config::{RoleFile, resolve, role_of};
use crate::error::CliError;
use crate::exit::Exit;

/// How long a service may take to answer that it is ready.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// A running platform.
pub struct Embedded {
    pub layout: Layout,
    postgres: Server,
    services: JoinSet<Result<(), CliError>>,
    shutdown: CancellationToken,
    runner: Option<KeptRunner>,
}

/// Three ports: consecutive from `first`, or free ones for 0.
///
/// # Errors
/// When one is taken.
pub fn ports(first: u16) -> Result<[u16; 3], CliError> {
    let mut held = Vec::new();
    let mut ports = [0; 3];
    for (index, port) in ports.iter_mut().enumerate() {
        let wanted = if first == 0 {
            0
        } else {
            first.saturating_add(u16::try_from(index).unwrap_or(0))
        };
        let listener = TcpListener::bind(("127.0.0.1", wanted)).map_err(|error| {
            CliError::usage(format!("port {wanted} cannot be had: {error}"))
                .hint("name another first port with --port, or 0 for free ones")
        })?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}

/// Starts the private PostgreSQL of a data directory, with the databases and roles of all services, and
/// writes the config files that say where it is. Without `ansible`, it is looked for on the PATH.
///
/// # Errors
/// Names what is missing and how to get it.
pub async fn start_database(layout: &Layout, ansible: Option<&Path>) -> Result<Server, CliError> {
    let failed = |error: &dyn std::error::Error| {
        CliError::new(
            Exit::Internal,
            format!("the private PostgreSQL does not start: {error}"),
        )
    };
    let server = Server::start(PostgresConfig::new(layout.data.join("postgres")))
        .await
        .map_err(|error| failed(&error))?;
    let superuser = server
        .url("postgres")
        .parse()
        .map_err(|error: database::DatabaseError| failed(&error))?;
    for service in SERVICES {
        let password = |role: &str| {
            resolve(&format!(
                "file://{}",
                layout
                    .data
                    .join("passwords")
                    .join(format!("{service}_{role}"))
                    .display()
            ))
        };
        let passwords = RolePasswords {
            owner: password("owner").ok(),
            api: password("api").ok(),
            worker: password("worker").ok(),
        };
        provision(&superuser, service::database_of(service), &passwords)
            .await
            .map_err(|error| failed(&error))?;
    }
    let ansible = ansible.map(Path::to_owned).or_else(ansible_on_path);
    layout.write_configs(server.socket_directory(), server.port(), ansible.as_deref())?;
    Ok(server)
}

impl Embedded {
    /// Starts everything and returns when all of it answers.
    ///
    /// # Errors
    /// Says which part does not start, and why.
    pub async fn start(layout: Layout, ansible: Option<PathBuf>, with_runner: bool) -> Result<Self, CliError> {
        let postgres = start_database(&layout, ansible.as_deref()).await?;
        let shutdown = CancellationToken::new();
        let mut services = JoinSet::new();
        for service in SERVICES {
            let role = service.replace('_', "-");
            if let RoleFile::Service(section) = role_of(&role, &layout.config(service))? {
                let assembled = service::assemble(*section).await?;
                services.spawn(assembled.run(shutdown.clone()));
            }
        }
        let mut platform = Self {
            layout,
            postgres,
            services,
            shutdown,
            runner: None,
        };
        for service in SERVICES {
            platform.ready(service).await?;
        }
        if with_runner {
            let log = platform.layout.data.join("runner/runner.log");
            platform.runner = Some(KeptRunner::start(platform.layout.config("runner"), log)?);
        }
        Ok(platform)
    }

    async fn ready(&mut self, service: &str) -> Result<(), CliError> {
        let client = Client::new(&self.layout.address(service), None)?;
        let ready = async {
            while client.get("/readyz").done().await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            () = ready => Ok(()),
            ended = self.services.join_next() => Err(of_ended(ended)),
            () = tokio::time::sleep(READY_LIMIT) => {
                Err(CliError::new(Exit::Unreachable, format!("{service} did not become ready")).hint("its log says why"))
            }
        }
    }

    /// The end of a service that ends unasked.
    pub async fn failed(&mut self) -> CliError {
        let ended = self.services.join_next().await;
        of_ended(ended)
    }

    /// Ends everything in order: the runner hands its leases back, the services end, the database stops.
    ///
    /// # Errors
    /// When a part did not end well.
    pub async fn stop(mut self) -> Result<(), CliError> {
        if let Some(runner) = self.runner.take() {
            runner.stop().await;
        }
        self.shutdown.cancel();
        let mut outcome = Ok(());
        while let Some(ended) = self.services.join_next().await {
            if !matches!(ended, Ok(Ok(()))) {
                outcome = Err(of_ended(Some(ended)));
            }
        }
        let stopped = self.postgres.stop().await;
        stopped.map_err(|error| {
            CliError::new(
                Exit::Internal,
                format!("the private PostgreSQL did not stop well: {error}"),
            )
        })?;
        outcome
    }
}

fn of_ended(ended: Option<Result<Result<(), CliError>, tokio::task::JoinError>>) -> CliError {
    match ended {
        Some(Ok(Err(error))) => error,
        Some(Err(error)) => CliError::new(Exit::Internal, format!("a service ended by a fault: {error}")),
        _ => CliError::new(Exit::Internal, "a service ended unasked"),
    }
}

fn ansible_on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|directory| directory.join("ansible-playbook").is_file())
}
