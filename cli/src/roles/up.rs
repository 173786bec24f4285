use std::path::Path;

use tokio::signal::unix::{SignalKind, signal};

use super::embedded::{Embedded, ports};
use super::layout::Layout;
use crate::args::Up;
use crate::context::{default_data_dir, file_in};
use crate::error::CliError;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::render::is_terminal;

pub async fn run(up: &Up, printer: Printer) -> Result<Exit, CliError> {
    super::telemetry::start();
    let data = up.data.clone().unwrap_or_else(default_data_dir);
    let layout = Layout::prepare(&data, ports(up.port)?)?;
    let mut platform = Embedded::start(layout, up.ansible.clone(), !up.no_runner).await?;
    announce(&platform, printer);
    let outcome = tokio::select! {
        asked = asked_to_end() => asked.map(|()| Exit::Success),
        error = platform.failed() => Err(error),
    };
    printer.note("stopping: leases are handed back, then the services and the database end");
    platform.stop().await?;
    outcome
}

fn announce(platform: &Embedded, printer: Printer) {
    let layout = &platform.layout;
    let context = file_in(&layout.data);
    let ready = serde_json::json!({
        "ready": true,
        "resource_catalog": layout.address("resource_catalog"),
        "control_plane": layout.address("control_plane"),
        "execution_plane": layout.address("execution_plane"),
        "context": context,
        "token_file": layout.data.join("token"),
        "organization_id": layout.organization,
    });
    printer.event(&ready, || {
        let line = |name: &str, value: String| format!("  {name:<16}  {value}\n");
        let services = ["resource_catalog", "control_plane", "execution_plane"];
        let mut text = "The platform is ready.\n\n".to_owned();
        for service in services {
            text.push_str(&line(&service.replace('_', "-"), layout.address(service)));
        }
        text.push_str(&line("data", layout.data.display().to_string()));
        text.push_str(&line("token", token_words(&layout.data)));
        Some(format!(
            "{text}\nIn another terminal:\n  export PLATFORM_CONTEXT={}\n  platform get resources\n\nCtrl-C stops it.",
            context.display()
        ))
    });
}

/// The token itself for somebody who looks at a terminal; what is written into a log gets its place.
fn token_words(data: &Path) -> String {
    let file = data.join("token");
    let shown = std::fs::read_to_string(&file).ok().filter(|_| is_terminal());
    match shown {
        Some(token) => format!(
            "{}\n  {:<16}  (admin, 12 hours; also in {})",
            token.trim(),
            "",
            file.display()
        ),
        None => format!("{} (admin, 12 hours)", file.display()),
    }
}

/// Returns when the process is asked to end: Ctrl-C or SIGTERM.
///
/// # Errors
/// When signals cannot be watched.
pub async fn asked_to_end() -> Result<(), CliError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
