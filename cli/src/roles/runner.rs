use std::sync::Arc;

use contracts::Isolation as Grade;
use execution_plane_ports::{Isolation, SecretStore};
use execution_plane_runner::Deps;
use identity::BearerToken;
use isolation_bubblewrap::{Bubblewrap, BubblewrapConfig, PlainProcess, PlainProcessConfig};
use secrecy::ExposeSecret as _;
use secrets_age::AgeSecretStore;
use tokio_util::sync::CancellationToken;

use super::{telemetry, up};
use crate::args::Runner;
use crate::config::{RoleFile, RunnerSection, role_of};
use crate::error::CliError;
use crate::exit::Exit;
use crate::printer::Printer;

pub async fn run(what: &Runner, printer: Printer) -> Result<Exit, CliError> {
    telemetry::start();
    let RoleFile::Runner(section) = role_of("runner", &what.config)? else {
        return Err(CliError::new(Exit::Internal, "a runner has a runner's configuration"));
    };
    let deps = dependencies(&section).await?;
    printer.event(
        &serde_json::json!({"started": true, "role": "runner", "name": section.config.name}),
        || {
            Some(format!(
                "runner {} works for {}",
                section.config.name, section.config.service_url
            ))
        },
    );
    let shutdown = CancellationToken::new();
    let running = execution_plane_runner::run(section.config, deps, shutdown.clone());
    tokio::pin!(running);
    tokio::select! {
        ended = &mut running => {
            ended.map_err(|error| CliError::new(Exit::Internal, kernel::with_causes(&error)))?;
            return Err(CliError::new(Exit::Internal, "the runner ended unasked"));
        }
        asked = up::asked_to_end() => asked?,
    }
    shutdown.cancel();
    running
        .await
        .map_err(|error| CliError::new(Exit::Internal, kernel::with_causes(&error)))?;
    Ok(Exit::Success)
}

async fn dependencies(section: &RunnerSection) -> Result<Deps, CliError> {
    let Some(file) = &section.secrets.age_file else {
        return Err(CliError::usage("the runner has no secret store").hint("name an age file: [secrets] age_file"));
    };
    let store = AgeSecretStore::open_or_init(file)
        .map_err(|error| CliError::usage(format!("the secret store {} cannot be opened: {error}", file.display())))?;
    let secrets: Arc<dyn SecretStore> = Arc::new(store);
    let mut isolation: Vec<Arc<dyn Isolation>> = Vec::new();
    for grade in &section.isolation {
        isolation.push(grade_of(*grade, section).await?);
    }
    let enrolment_token = BearerToken::new(section.enrolment_token.expose_secret().to_owned());
    Ok(Deps {
        enrolment_token,
        secrets,
        isolation,
    })
}

async fn grade_of(grade: Grade, section: &RunnerSection) -> Result<Arc<dyn Isolation>, CliError> {
    let unavailable = |error: execution_plane_ports::IsolationError| {
        CliError::new(Exit::Internal, format!("this machine cannot isolate jobs: {error}"))
            .hint("'scripts/setup' installs bubblewrap")
    };
    Ok(match grade {
        Grade::Process => Arc::new(PlainProcess::probe(PlainProcessConfig::default()).map_err(unavailable)?),
        _ => {
            let shared = section
                .config
                .ansible_directory
                .iter()
                .filter_map(|directory| Some(directory.parent()?.to_owned()))
                .collect();
            let config = BubblewrapConfig {
                shared,
                ..BubblewrapConfig::default()
            };
            Arc::new(Bubblewrap::probe(config).await.map_err(unavailable)?)
        }
    })
}
