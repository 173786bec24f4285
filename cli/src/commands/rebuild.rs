use std::time::Duration;

use control_plane_api::{ProjectionView, RebuildRequest};

use super::find;
use crate::args::Rebuild;
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;
use crate::render::plural;

/// How often it is looked whether it is done.
const LOOK: Duration = Duration::from_secs(1);

pub async fn run(what: &Rebuild, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let request = RebuildRequest {
        reason: what.reason.clone(),
    };
    let mut view = platform.control.rebuild_projection(&what.projection, &request).await?;
    if !what.no_wait {
        printer.say(format!("◷ {} is made anew from a snapshot", view.name));
    }
    while view.rebuilding && !what.no_wait && printer.is_heard() {
        tokio::time::sleep(LOOK).await;
        view = find::projection(&what.projection, platform).await?;
    }
    printer.value(&view, || text(&view));
    Ok(Exit::Success)
}

fn text(view: &ProjectionView) -> String {
    let resources = plural(usize::try_from(view.resources).unwrap_or(usize::MAX), "resource");
    match view.rebuilding {
        true => format!(
            "{} is to be made anew; 'platform get projections' tells when it is",
            view.name
        ),
        false => format!(
            "✔ {} is as the catalog was at revision {}: {resources}",
            view.name, view.revision
        ),
    }
}
