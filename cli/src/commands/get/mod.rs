//! `platform get`: lists of things, and one thing by name; one file for each service that is asked.

mod execution;
mod operations;
mod resources;

use serde::Serialize;

use crate::args::Get;
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;

const KINDS: &str = "resources, resource-types, capabilities, packs, operations, node-runs, events, gates, claims, attempts, runners, projections";

pub async fn run(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    match what.kind.trim_end_matches('s') {
        "resource" => resources::resources(what, platform, printer).await,
        "resource-type" | "type" => resources::types(what, platform, printer).await,
        "capability" | "capabilitie" | "capability-definition" => {
            resources::capabilities(what, platform, printer).await
        }
        "pack" => operations::packs(what, platform, printer).await,
        "operation" => operations::operations(what, platform, printer).await,
        "event" => operations::events(what, platform, printer).await,
        "node-run" => operations::node_runs(what, platform, printer).await,
        "gate" => operations::gates(what, platform, printer).await,
        "claim" => operations::claims(what, platform, printer).await,
        "attempt" => execution::attempts(what, platform, printer).await,
        "runner" => execution::runners(platform, printer).await,
        "projection" => operations::projections(platform, printer).await,
        other => Err(CliError::usage(format!("there is no kind {other:?}")).hint(format!("kinds: {KINDS}"))),
    }
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, CliError> {
    text.parse().map_err(|error: T::Err| CliError::usage(error.to_string()))
}

/// The word that a wire enum is written as.
fn word<T: Serialize>(value: &T) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|v| v.as_str().map(str::to_owned))
        .unwrap_or_default()
}
