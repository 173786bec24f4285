//! What resource-catalog holds.

use kernel::{DottedName, ResourceId};
use resource_catalog_api::{
    CapabilityDefinition, ListDefinitionsQuery, ListEdgesQuery, ListResourcesQuery, Resource, ResourceType,
};

use super::parsed;
use crate::args::Get;
use crate::error::CliError;
use crate::exit::Exit;
use crate::pages;
use crate::platform::Platform;
use crate::printer::Printer;
use crate::render::Table;

pub async fn resources(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    if let Some(name) = &what.name {
        let resource = platform.catalog.resource(&parsed(name)?).await?;
        printer.value(&resource, || resource_table(std::slice::from_ref(&resource)).render());
        return Ok(Exit::Success);
    }
    let (capability, capability_version) = match what
        .capability
        .as_deref()
        .map(|text| text.split_once('@').unwrap_or((text, "")))
    {
        None => (None, None),
        Some((name, range)) => (Some(parsed(name)?), (!range.is_empty()).then(|| range.to_owned())),
    };
    let filter = ListResourcesQuery {
        resource_type: what.resource_type.as_deref().map(parsed).transpose()?,
        environment: what.environment.clone(),
        selector: what.selector.clone(),
        capability,
        capability_version,
        ..ListResourcesQuery::default()
    };
    let listed = pages::read(what.limit, |limit, cursor| {
        let query = ListResourcesQuery {
            limit: Some(limit),
            cursor,
            ..filter.clone()
        };
        async move {
            let page = platform.catalog.resources(&query).await?;
            Ok((page.items, page.next_cursor))
        }
    })
    .await?;
    printer.listed(&listed, "resources", resource_table);
    Ok(Exit::Success)
}

fn resource_table(resources: &[Resource]) -> Table {
    let mut table = Table::new(&[
        "resource",
        "type",
        "environment",
        "lifecycle",
        "health",
        "version",
        "capabilities",
    ]);
    for resource in resources {
        table.row([
            resource.resource_id.to_string(),
            resource.resource_type.to_string(),
            resource.environment.clone().unwrap_or_default(),
            resource.lifecycle_status.as_str().to_owned(),
            resource.health.status.as_str().to_owned(),
            resource.version.to_string(),
            capability_words(resource),
        ]);
    }
    table
}

fn capability_words(resource: &Resource) -> String {
    let words = resource.provided_capabilities.iter().map(|provided| {
        let version = provided.attributes.get("version").and_then(|v| v.as_str());
        version.map_or_else(
            || provided.capability.to_string(),
            |v| format!("{}@{v}", provided.capability),
        )
    });
    words.collect::<Vec<_>>().join(" ")
}

pub async fn types(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    if let Some(name) = &what.name {
        let found = platform.catalog.resource_type(&parsed(name)?).await?;
        printer.value(&found, || type_table(std::slice::from_ref(&found)).render());
        return Ok(Exit::Success);
    }
    let listed = pages::read(what.limit, |limit, cursor| async move {
        let query = ListDefinitionsQuery {
            limit: Some(limit),
            cursor,
        };
        let page = platform.catalog.resource_types(&query).await?;
        Ok((page.items, page.next_cursor))
    })
    .await?;
    printer.listed(&listed, "resource types", type_table);
    Ok(Exit::Success)
}

fn type_table(types: &[ResourceType]) -> Table {
    let rows = types.iter().map(|item| {
        let definition = &item.definition;
        (
            &item.name,
            definition.parent.as_ref(),
            item.version,
            &definition.description,
        )
    });
    definition_table("type", rows)
}

pub async fn capabilities(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    if let Some(name) = &what.name {
        let found = platform.catalog.capability_definition(&parsed(name)?).await?;
        printer.value(&found, || capability_table(std::slice::from_ref(&found)).render());
        return Ok(Exit::Success);
    }
    let listed = pages::read(what.limit, |limit, cursor| async move {
        let query = ListDefinitionsQuery {
            limit: Some(limit),
            cursor,
        };
        let page = platform.catalog.capability_definitions(&query).await?;
        Ok((page.items, page.next_cursor))
    })
    .await?;
    printer.listed(&listed, "capability definitions", capability_table);
    Ok(Exit::Success)
}

fn capability_table(definitions: &[CapabilityDefinition]) -> Table {
    let rows = definitions.iter().map(|item| {
        let definition = &item.definition;
        (
            &item.name,
            definition.parent.as_ref(),
            item.version,
            &definition.description,
        )
    });
    definition_table("capability", rows)
}

fn definition_table<'a>(
    heading: &str,
    rows: impl Iterator<Item = (&'a DottedName, Option<&'a DottedName>, i64, &'a String)>,
) -> Table {
    let mut table = Table::new(&[heading, "parent", "version", "description"]);
    for (name, parent, version, description) in rows {
        table.row([
            name.to_string(),
            parent.map(ToString::to_string).unwrap_or_default(),
            version.to_string(),
            description.clone(),
        ]);
    }
    table
}

pub async fn edges(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let source: ResourceId = parsed(what.name.as_deref().unwrap_or_default())?;
    let from = &source;
    let listed = pages::read(what.limit, |limit, cursor| async move {
        let query = ListEdgesQuery {
            limit: Some(limit),
            cursor,
        };
        let page = platform.catalog.edges(from, &query).await?;
        Ok((page.items, page.next_cursor))
    })
    .await?;
    printer.listed(&listed, &format!("edges from {source}"), |edges| {
        let mut table = Table::new(&["resource", "edge", "target"]);
        for edge in edges {
            table.row([
                source.to_string(),
                edge.edge_type.as_str().to_owned(),
                edge.target.to_string(),
            ]);
        }
        table
    });
    Ok(Exit::Success)
}
