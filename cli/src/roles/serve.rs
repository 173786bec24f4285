use tokio_util::sync::CancellationToken;

use super::{service, telemetry, up};
use crate::args::{Serve, Service};
use crate::config::{RoleFile, role_of};
use crate::error::CliError;
use crate::exit::Exit;
use crate::printer::Printer;

pub async fn run(serve: &Serve, printer: Printer) -> Result<Exit, CliError> {
    telemetry::start();
    let role = match serve.service {
        Service::ResourceCatalog => "resource-catalog",
        Service::ControlPlane => "control-plane",
        Service::ExecutionPlane => "execution-plane",
    };
    let RoleFile::Service(section) = role_of(role, &serve.config)? else {
        return Err(CliError::new(Exit::Internal, "a service has a service's configuration"));
    };
    let listen = section.listen;
    let assembled = service::assemble(*section).await?;
    printer.event(
        &serde_json::json!({"ready": true, "role": role, "address": format!("http://{listen}")}),
        || Some(format!("{role} serves on http://{listen}")),
    );
    let shutdown = CancellationToken::new();
    let running = assembled.run(shutdown.clone());
    tokio::pin!(running);
    tokio::select! {
        ended = &mut running => {
            ended?;
            return Err(CliError::new(Exit::Internal, format!("{role} ended unasked")));
        }
        asked = up::asked_to_end() => asked?,
    }
    shutdown.cancel();
    running.await?;
    Ok(Exit::Success)
}
