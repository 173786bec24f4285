use chrono::Utc;
use control_plane_api::{ListEventsQuery, ListOperationsQuery, PageQuery};
use execution_plane_api::{AttemptListQuery, RunnerListQuery};
use resource_catalog_api::{ListDefinitionsQuery, ListResourcesQuery, Resource};
use serde::Serialize;

use crate::args::Get;
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;
use crate::render::{Table, age};

const KINDS: &str = "resources, resource-types, capabilities, packs, operations, node-runs, events, gates, claims, attempts, runners, projections";

pub async fn run(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    match what.kind.trim_end_matches('s') {
        "resource" => resources(what, platform, printer).await,
        "resource-type" | "type" => types(what, platform, printer).await,
        "capability" | "capabilitie" | "capability-definition" => capabilities(what, platform, printer).await,
        "pack" => packs(what, platform, printer).await,
        "operation" => operations(what, platform, printer).await,
        "event" => events(what, platform, printer).await,
        "node-run" => node_runs(what, platform, printer).await,
        "gate" => gates(what, platform, printer).await,
        "claim" => claims(what, platform, printer).await,
        "attempt" => attempts(what, platform, printer).await,
        "runner" => runners(platform, printer).await,
        "projection" => projections(platform, printer).await,
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

async fn resources(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
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

async fn types(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
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

async fn capabilities(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
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

async fn packs(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let mut items = platform
        .control
        .packs(&PageQuery {
            limit: Some(1000),
            cursor: None,
        })
        .await?
        .items;
    items.retain(|pack| what.name.as_ref().is_none_or(|name| *name == pack.name));
    printer.list(&items, "packs", || {
        let mut table = Table::new(&["pack", "version", "templates", "digest", "published by"]);
        for pack in &items {
            let row = [
                &pack.name,
                &pack.version,
                &pack.templates.join(" "),
                &pack.digest.short(),
                &pack.published_by,
            ];
            table.row(row.map(Clone::clone));
        }
        table
    });
    Ok(Exit::Success)
}

async fn operations(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    if let Some(name) = &what.name {
        let operation = platform
            .control
            .operation(super::intervene::operation_id(name)?)
            .await?;
        let runs = super::watch::node_runs(operation.summary.id, platform).await?;
        printer.value(&operation, || super::describe::operation_text(&operation, &runs));
        return Ok(Exit::Success);
    }
    let query = ListOperationsQuery {
        environment: what.environment.clone(),
        selector: what.selector.clone(),
        limit: Some(what.limit.unwrap_or(100)),
        ..ListOperationsQuery::default()
    };
    let items = platform.control.operations(&query).await?.items;
    printer.list(&items, "operations", || {
        let mut table = Table::new(&[
            "operation",
            "state",
            "run",
            "scenario",
            "environment",
            "requested by",
            "age",
        ]);
        let now = Utc::now();
        for item in &items {
            table.row([
                item.id.to_string(),
                item.state.as_str().to_owned(),
                item.run.to_string(),
                item.template.clone(),
                item.environment.clone(),
                item.requested_by.clone(),
                age(item.created_at, now),
            ]);
        }
        table
    });
    Ok(Exit::Success)
}

async fn events(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let Some(operation) = what.operation.as_ref().or(what.name.as_ref()) else {
        return Err(CliError::usage("events belong to an operation").hint("platform get events OPERATION"));
    };
    let id = super::intervene::operation_id(operation)?;
    let mut query = ListEventsQuery {
        limit: Some(1000),
        ..ListEventsQuery::default()
    };
    let mut items = Vec::new();
    loop {
        let page = platform.control.events(id, &query).await?;
        items.extend(page.items);
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            break;
        }
    }
    printer.list(&items, "events", || {
        let mut table = Table::new(&["nr", "at", "event", "run", "node", "by", "because"]);
        for event in &items {
            table.row([
                event.sequence.to_string(),
                event.occurred_at.format("%H:%M:%S%.3f").to_string(),
                event.event_type.clone(),
                event.run.to_string(),
                event.node_id.clone().unwrap_or_default(),
                event.actor.clone(),
                event.cause.clone(),
            ]);
        }
        table
    });
    Ok(Exit::Success)
}

async fn node_runs(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let Some(operation) = what.operation.as_ref().or(what.name.as_ref()) else {
        return Err(CliError::usage("node runs belong to an operation").hint("platform get node-runs OPERATION"));
    };
    let items = super::watch::node_runs(super::intervene::operation_id(operation)?, platform).await?;
    printer.list(&items, "node runs", || super::describe::node_table(&items));
    Ok(Exit::Success)
}

async fn gates(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let Some(operation) = what.operation.as_ref().or(what.name.as_ref()) else {
        return Err(CliError::usage("gates belong to an operation").hint("platform get gates --operation ID"));
    };
    let items = platform
        .control
        .gates(super::intervene::operation_id(operation)?)
        .await?
        .items;
    printer.list(&items, "gates", || {
        let mut table = Table::new(&["gate", "state", "role", "covers", "targets", "digest", "decided by"]);
        for gate in &items {
            let targets: Vec<&str> = gate.targets.iter().map(|t| t.resource_id.as_str()).collect();
            table.row([
                gate.node_id.clone(),
                word(&gate.state),
                gate.role.clone(),
                format!("{} nodes", gate.covers.len()),
                targets.join(" "),
                gate.covers_digest.short(),
                gate.decided_by.clone().unwrap_or_default(),
            ]);
        }
        table
    });
    Ok(Exit::Success)
}

async fn claims(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let items = platform
        .control
        .claims(&PageQuery {
            limit: what.limit.or(Some(1000)),
            cursor: None,
        })
        .await?
        .items;
    printer.list(&items, "claims", || {
        let mut table = Table::new(&["resource", "operation", "holds", "mode", "for", "why"]);
        let now = Utc::now();
        for claim in &items {
            for holder in &claim.holders {
                let row = [
                    claim.resource_id.to_string(),
                    holder.operation_id.to_string(),
                    "holds".into(),
                    word(&holder.mode),
                    age(holder.since, now),
                    holder.why.clone(),
                ];
                table.row(row);
            }
            for waiter in &claim.waiters {
                let row = [
                    claim.resource_id.to_string(),
                    waiter.operation_id.to_string(),
                    "waits".into(),
                    word(&waiter.mode),
                    age(waiter.since, now),
                    waiter.why.clone(),
                ];
                table.row(row);
            }
        }
        table
    });
    Ok(Exit::Success)
}

async fn attempts(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let operation_id = what
        .operation
        .as_deref()
        .map(super::intervene::operation_id)
        .transpose()?;
    let query = AttemptListQuery {
        operation_id,
        limit: Some(what.limit.unwrap_or(100)),
        ..AttemptListQuery::default()
    };
    let items = platform.execution.attempts(&query).await?.items;
    printer.list(&items, "attempts", || {
        let mut table = Table::new(&["attempt", "node", "job", "state", "queued", "ran for"]);
        let now = Utc::now();
        for item in &items {
            let ran = item
                .started_at
                .map(|start| age(start, item.finished_at.unwrap_or(now)))
                .unwrap_or_default();
            let row = [
                item.attempt_id.to_string(),
                item.plan_node_id.clone(),
                item.job_type.as_str().into(),
                word(&item.state),
                format!("{} ago", age(item.queued_at, now)),
                ran,
            ];
            table.row(row);
        }
        table
    });
    Ok(Exit::Success)
}

async fn runners(platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let items = platform
        .execution
        .runners(&RunnerListQuery {
            limit: Some(1000),
            cursor: None,
        })
        .await?
        .items;
    printer.list(&items, "runners", || {
        let mut table = Table::new(&["runner", "status", "in use", "jobs", "isolation", "last seen"]);
        let now = Utc::now();
        for item in &items {
            let jobs: Vec<&str> = item.job_types.iter().map(|job| job.as_str()).collect();
            let grades: Vec<String> = item.isolation.iter().map(word).collect();
            let row = [
                item.name.clone(),
                word(&item.status),
                format!("{} of {}", item.in_use, item.capacity),
                jobs.join(" "),
                grades.join(" "),
                format!("{} ago", age(item.last_seen_at, now)),
            ];
            table.row(row);
        }
        table
    });
    Ok(Exit::Success)
}

async fn projections(platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let items = platform.control.projections().await?;
    printer.list(&items, "projections", || {
        let mut table = Table::new(&[
            "projection",
            "revision",
            "head",
            "behind",
            "resources",
            "gaps",
            "parked",
        ]);
        for item in &items {
            table.row([
                item.name.clone(),
                item.revision.to_string(),
                item.head.to_string(),
                item.lag_revisions.to_string(),
                item.resources.to_string(),
                item.gaps.to_string(),
                item.parked.len().to_string(),
            ]);
        }
        table
    });
    Ok(Exit::Success)
}
