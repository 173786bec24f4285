use std::path::Path;

use super::embedded::{ports, start_database};
use super::layout::{Layout, ports_in};
use super::{telemetry, up};
use crate::args::Database;
use crate::context::default_data_dir;
use crate::error::CliError;
use crate::exit::Exit;
use crate::printer::Printer;

/// Where a new data directory begins.
const FIRST_PORT: u16 = 7300;

/// The private PostgreSQL alone, with every database, role and config file: what `platform serve` needs
/// when the services run apart on one machine. It may be started anew under services that run.
pub async fn run(what: &Database, printer: Printer) -> Result<Exit, CliError> {
    telemetry::start();
    let data = what.data.clone().unwrap_or_else(default_data_dir);
    let layout = Layout::prepare(&data, named_ports(&data, what.port)?)?;
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

/// The ports that the config files name. Nothing is bound: services that run already may hold them.
fn named_ports(data: &Path, first: Option<u16>) -> Result<[u16; 3], CliError> {
    let first = match first {
        Some(0) => return ports(0),
        Some(first) => first,
        None => match ports_in(data)? {
            Some(kept) => return Ok(kept),
            None => FIRST_PORT,
        },
    };
    let next = |offset: u16| {
        first
            .checked_add(offset)
            .ok_or_else(|| CliError::usage(format!("there are no three ports from {first} on")))
    };
    Ok([first, next(1)?, next(2)?])
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn ports_are_kept_over_restarts_also_while_services_hold_them() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path();
        assert_eq!(named_ports(data, None).unwrap(), [7300, 7301, 7302]);
        let holder = TcpListener::bind("127.0.0.1:0").unwrap();
        let held = holder.local_addr().unwrap().port();
        Layout::prepare(data, [held, 17, 18]).unwrap();
        assert_eq!(named_ports(data, None).unwrap(), [held, 17, 18]);
        assert_eq!(named_ports(data, Some(9000)).unwrap(), [9000, 9001, 9002]);
        assert!(named_ports(data, Some(u16::MAX)).is_err());
    }
}
