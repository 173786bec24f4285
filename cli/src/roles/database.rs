use super::embedded::{ports, start_database};
use super::layout::Layout;
use super::{telemetry, up};
use crate::args::Database;
use crate::context::default_data_dir;
use crate::error::CliError;
use crate::exit::Exit;
use crate::printer::Printer;

/// The private PostgreSQL alone, with every database, role and config file: what `platform serve` needs
/// when the services run apart on one machine.
pub async fn run(what: &Database, printer: Printer) -> Result<Exit, CliError> {
    telemetry::start();
    let data = what.data.clone().unwrap_or_else(default_data_dir);
    let layout = Layout::prepare(&data, ports(what.port)?)?;
    let server = start_database(&layout, what.ansible.as_deref()).await?;
    let ready = serde_json::json!({"ready": true, "data": layout.data, "config": layout.data.join("config"), "sockets": server.socket_directory(), "port": server.port(), "programs": server.program_directory(), "password_file": server.password_file()});
    printer.event(&ready, || {
        Some(format!(
            "PostgreSQL is ready; config files are in {}",
            layout.data.join("config").display()
        ))
    });
    up::asked_to_end().await?;
    server
        .stop()
        .await
        .map_err(|error| CliError::new(Exit::Internal, error.to_string()))?;
    Ok(Exit::Success)
}
