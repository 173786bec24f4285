//! What control-plane holds.

use chrono::Utc;
use control_plane_api::{ListEventsQuery, ListOperationsQuery, PageQuery};

use super::word;
use crate::args::Get;
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;
use crate::render::{Table, age};

pub async fn packs(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
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

pub async fn operations(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    if let Some(name) = &what.name {
        let operation = platform
            .control
            .operation(crate::commands::intervene::operation_id(name)?)
            .await?;
        let runs = crate::commands::watch::node_runs(operation.summary.id, platform).await?;
        let stalled = crate::commands::stalled::stalled(&runs, platform).await;
        printer.value(&operation, || {
            crate::commands::describe::operation_text(&operation, &runs, &stalled)
        });
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

pub async fn events(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let Some(operation) = what.operation.as_ref().or(what.name.as_ref()) else {
        return Err(CliError::usage("events belong to an operation").hint("platform get events OPERATION"));
    };
    let id = crate::commands::intervene::operation_id(operation)?;
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
                event.run.map(|run| run.to_string()).unwrap_or_default(),
                event.node_id.clone().unwrap_or_default(),
                event.actor.clone(),
                event.cause.clone(),
            ]);
        }
        table
    });
    Ok(Exit::Success)
}

pub async fn node_runs(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let Some(operation) = what.operation.as_ref().or(what.name.as_ref()) else {
        return Err(CliError::usage("node runs belong to an operation").hint("platform get node-runs OPERATION"));
    };
    let items =
        crate::commands::watch::node_runs(crate::commands::intervene::operation_id(operation)?, platform).await?;
    printer.list(&items, "node runs", || crate::commands::describe::node_table(&items));
    Ok(Exit::Success)
}

pub async fn gates(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let Some(operation) = what.operation.as_ref().or(what.name.as_ref()) else {
        return Err(CliError::usage("gates belong to an operation").hint("platform get gates --operation ID"));
    };
    let items = platform
        .control
        .gates(crate::commands::intervene::operation_id(operation)?)
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

pub async fn claims(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
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

pub async fn projections(platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
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
