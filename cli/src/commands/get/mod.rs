//! `platform get`: lists of things, and one thing by name; one file for each service that is asked.

mod audit;
mod execution;
mod kind;
mod operations;
mod resources;

use serde::de::DeserializeOwned;

use self::kind::Kind;
use crate::args::Get;
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;

pub async fn run(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    match kind::asked(what)? {
        Kind::Resources => resources::resources(what, platform, printer).await,
        Kind::ResourceTypes => resources::types(what, platform, printer).await,
        Kind::Capabilities => resources::capabilities(what, platform, printer).await,
        Kind::Edges => resources::edges(what, platform, printer).await,
        Kind::Packs => operations::packs(what, platform, printer).await,
        Kind::Operations => operations::operations(what, platform, printer).await,
        Kind::NodeRuns => operations::node_runs(what, platform, printer).await,
        Kind::Events => operations::events(what, platform, printer).await,
        Kind::Gates => operations::gates(what, platform, printer).await,
        Kind::Claims => operations::claims(what, platform, printer).await,
        Kind::Projections => operations::projections(what, platform, printer).await,
        Kind::Audit => audit::facts(what, platform, printer).await,
        Kind::Attempts => execution::attempts(what, platform, printer).await,
        Kind::Artifacts => execution::artifacts(what, platform, printer).await,
        Kind::Runners => execution::runners(what, platform, printer).await,
        Kind::CommandPolicies => execution::policy(what, platform, printer).await,
    }
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, CliError> {
    text.parse().map_err(|error: T::Err| CliError::usage(error.to_string()))
}

/// A state of the kind that is listed; an unknown one is answered with those that there are.
fn state<T: DeserializeOwned>(what: &Get) -> Result<Option<T>, CliError> {
    let Some(word) = &what.state else {
        return Ok(None);
    };
    serde_json::from_value(serde_json::Value::from(word.clone()))
        .map(Some)
        .map_err(|error| CliError::usage(format!("--state: {error}")))
}
