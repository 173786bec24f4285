//! What resource-catalog holds.

use resource_catalog_api::{ListDefinitionsQuery, ListResourcesQuery, Resource};

use super::parsed;
use crate::args::Get;
use crate::error::CliError;
use crate::exit::Exit;
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
    let mut query = ListResourcesQuery {
        resource_type: what.resource_type.as_deref().map(parsed).transpose()?,
        environment: what.environment.clone(),
        selector: what.selector.clone(),
        capability,
        capability_version,
        limit: Some(what.limit.unwrap_or(1000).min(1000)),
        ..ListResourcesQuery::default()
    };
    let mut items = Vec::new();
    loop {
        let page = platform.catalog.resources(&query).await?;
        items.extend(page.items);
        query.cursor = page.next_cursor;
        if query.cursor.is_none() || what.limit.is_some_and(|limit| items.len() >= limit as usize) {
            break;
        }
    }
    if let Some(limit) = what.limit {
        items.truncate(limit as usize);
    }
    printer.list(&items, "resources", || resource_table(&items));
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
    let query = ListDefinitionsQuery {
        limit: what.limit.or(Some(1000)),
        ..ListDefinitionsQuery::default()
    };
    let items = match &what.name {
        Some(name) => vec![platform.catalog.resource_type(&parsed(name)?).await?],
        None => platform.catalog.resource_types(&query).await?.items,
    };
    printer.list(&items, "resource types", || {
        let mut table = Table::new(&["type", "parent", "version", "description"]);
        for item in &items {
            let definition = &item.definition;
            let parent = definition.parent.as_ref().map(ToString::to_string).unwrap_or_default();
            table.row([
                item.name.to_string(),
                parent,
                item.version.to_string(),
                definition.description.clone(),
            ]);
        }
        table
    });
    Ok(Exit::Success)
}

pub async fn capabilities(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let query = ListDefinitionsQuery {
        limit: what.limit.or(Some(1000)),
        ..ListDefinitionsQuery::default()
    };
    let items = match &what.name {
        Some(name) => vec![platform.catalog.capability_definition(&parsed(name)?).await?],
        None => platform.catalog.capability_definitions(&query).await?.items,
    };
    printer.list(&items, "capability definitions", || {
        let mut table = Table::new(&["capability", "parent", "version", "description"]);
        for item in &items {
            let parent = item
                .definition
                .parent
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default();
            table.row([
                item.name.to_string(),
                parent,
                item.version.to_string(),
                item.definition.description.clone(),
            ]);
        }
        table
    });
    Ok(Exit::Success)
}
