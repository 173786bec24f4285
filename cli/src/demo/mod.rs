//! `platform demo`: the whole story on real hosts, told as it happens. It ends by itself, exits non-zero
//! when anything that it says is untrue, and leaves nothing running.

mod stage;
mod story;
mod twins;

use std::path::Path;

use demo_hosts::{Hosts, Options};

use crate::args::Demo;
use crate::error::CliError;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::render::duration;
use crate::roles::embedded::{Embedded, ports};
use crate::roles::layout::Layout;
use crate::roles::{telemetry, up};
use stage::Stage;

const HOSTS: usize = 3;

pub async fn run(demo: &Demo, printer: Printer) -> Result<Exit, CliError> {
    telemetry::start();
    let started = chrono::Utc::now();
    let temporary = tempfile::Builder::new()
        .prefix("platform-demo-")
        .tempdir_in(std::env::temp_dir())?;
    let data = demo.data.clone().unwrap_or_else(|| temporary.path().join("data"));
    open_to_the_database(temporary.path())?;
    let source = demo
        .source
        .canonicalize()
        .map_err(|error| CliError::usage(format!("{}: {error}", demo.source.display())))?;

    printer.say("━━ Starting: a private PostgreSQL, three services, one runner, three SSH hosts");
    let hosts = start_hosts(&temporary.path().join("hosts")).await?;
    let layout = Layout::prepare(&data, ports(0)?)?;
    let mut stage = Stage::new(&layout, printer)?;
    let mut platform = Embedded::start(layout, demo.ansible.clone(), true).await?;
    for host in &hosts.hosts {
        stage.tell(format!(
            "{} answers at {}@{}:{}",
            host.name, host.user, host.address, host.port
        ));
    }
    let told = tokio::select! {
        told = tell(&mut stage, &source, &hosts) => told,
        error = platform.failed() => Err(error),
        asked = up::asked_to_end() => asked.and(Err(CliError::new(Exit::Cancelled, "the demonstration was interrupted"))),
    };
    printer.say("\n━━ Stopping everything");
    let stopped = platform.stop().await;
    let gone = tokio::task::spawn_blocking(move || hosts.stop()).await;
    told?;
    stopped?;
    gone.map_err(|error| CliError::new(Exit::Internal, error.to_string()))?
        .map_err(|error| CliError::new(Exit::Internal, format!("a host did not stop: {error}")))?;
    printer.say(format!(
        "   {} things were checked and are true; took {}",
        stage.checked(),
        duration(chrono::Utc::now() - started)
    ));
    Ok(Exit::Success)
}

/// PostgreSQL's lesser account passes through the temporary directory to its own.
fn open_to_the_database(directory: &Path) -> Result<(), CliError> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(std::fs::set_permissions(
        directory,
        std::fs::Permissions::from_mode(0o711),
    )?)
}

async fn start_hosts(directory: &Path) -> Result<Hosts, CliError> {
    let options = Options::web(directory, HOSTS);
    let started = tokio::task::spawn_blocking(move || Hosts::start(&options)).await;
    started
        .map_err(|error| CliError::new(Exit::Internal, error.to_string()))?
        .map_err(|error| {
            CliError::new(Exit::Internal, format!("the hosts do not start: {error}"))
                .hint("'scripts/setup' installs what is missing")
        })
}

async fn tell(stage: &mut Stage, source: &Path, hosts: &Hosts) -> Result<(), CliError> {
    story::register(stage, source, hosts).await?;
    story::plan(stage, source).await?;
    let first = story::roll_out(stage, hosts).await?;
    story::prove(stage, &first).await?;
    twins::broken_host(stage, hosts).await?;
    let third = twins::wrong_parameter(stage, hosts).await?;
    twins::second_operation(stage, &third).await?;
    twins::revisions(stage, &third).await?;
    twins::cancel(stage, hosts).await
}
