use kernel::ResourceId;
use resource_catalog_api::{Edge, EdgeType};

use crate::args::EdgeCommand;
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;

pub async fn run(what: &EdgeCommand, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let (EdgeCommand::Add(named) | EdgeCommand::Remove(named)) = what;
    let source = resource_id(&named.source)?;
    let edge = Edge {
        edge_type: edge_type(&named.edge_type)?,
        target: resource_id(&named.target)?,
    };
    let before = platform.catalog.resource(&source).await?;
    let (after, done, idle) = match what {
        EdgeCommand::Add(_) => (
            platform.catalog.add_edge(&source, &edge).await?,
            "added",
            "was there already",
        ),
        EdgeCommand::Remove(_) => (
            platform.catalog.remove_edge(&source, &edge).await?,
            "removed",
            "was not there",
        ),
    };
    let word = if after.version == before.version { idle } else { done };
    printer.value(&after, || {
        format!(
            "edge {source} {} {} {word}; {source} is at version {}",
            edge.edge_type.as_str(),
            edge.target,
            after.version
        )
    });
    Ok(Exit::Success)
}

fn resource_id(text: &str) -> Result<ResourceId, CliError> {
    text.parse()
        .map_err(|error: kernel::ResourceIdError| CliError::usage(error.to_string()))
}

fn edge_type(text: &str) -> Result<EdgeType, CliError> {
    let found = EdgeType::ALL.into_iter().find(|known| known.as_str() == text);
    found.ok_or_else(|| {
        let known = EdgeType::ALL.map(EdgeType::as_str).join(", ");
        CliError::usage(format!("{text:?} is no type of edge")).hint(format!("one of: {known}"))
    })
}
