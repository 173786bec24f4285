//! What control-plane holds.

use chrono::Utc;
use control_plane_api::{ListEventsQuery, ListNodeRunsQuery, ListOperationsQuery, PageQuery, ProjectionView};
use kernel::ResourceId;
use kernel::id::OperationId;

use super::{parsed, state};
use crate::args::Get;
use crate::commands::{find, gate};
use crate::error::CliError;
use crate::exit::Exit;
use crate::pages;
use crate::platform::Platform;
use crate::printer::Printer;
use crate::render::{Table, age, word};

pub async fn packs(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    // A name picks from all of them, so the limit counts afterwards.
    let limit = what.limit.filter(|_| what.name.is_none());
    let mut listed = pages::read(limit, |limit, cursor| async move {
        let query = PageQuery {
            limit: Some(limit),
            cursor,
        };
        let page = platform.control.packs(&query).await?;
        Ok((page.items, page.next_cursor))
    })
    .await?;
    if let Some(name) = &what.name {
        let (name, version) = name.split_once('@').unwrap_or((name, ""));
        listed
            .items
            .retain(|pack| pack.name == name && (version.is_empty() || pack.version == version));
        if listed.items.is_empty() {
            return Err(find::unknown("pack", what.name.as_deref().unwrap_or_default(), "packs"));
        }
        listed = listed.at_most(what.limit);
    }
    printer.listed(&listed, "packs", |items| {
        let mut table = Table::new(&["pack", "version", "templates", "digest", "published by"]);
        for pack in items {
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
        let operation = platform.control.operation(find::operation_id(name)?).await?;
        let runs = crate::commands::watch::node_runs(operation.summary.id, platform).await?;
        let stalled = crate::commands::stalled::stalled(&runs, platform).await;
        printer.value(&operation, || {
            crate::commands::describe::operation_text(&operation, &runs, &stalled)
        });
        return Ok(Exit::Success);
    }
    let filter = ListOperationsQuery {
        environment: what.environment.clone(),
        selector: what.selector.clone(),
        state: state(what)?,
        ..ListOperationsQuery::default()
    };
    let listed = pages::read(what.limit, |limit, cursor| {
        let query = ListOperationsQuery {
            limit: Some(limit),
            cursor,
            ..filter.clone()
        };
        async move {
            let page = platform.control.operations(&query).await?;
            Ok((page.items, page.next_cursor))
        }
    })
    .await?;
    printer.listed(&listed, "operations", |items| {
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
        for item in items {
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

/// The operation that something belongs to: the name, or `--operation`.
fn of_operation(what: &Get) -> Result<OperationId, CliError> {
    let named = what.operation.as_ref().or(what.name.as_ref());
    find::operation_id(named.map_or("", String::as_str))
}

pub async fn events(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let id = of_operation(what)?;
    let listed = pages::read(what.limit, |limit, cursor| async move {
        let query = ListEventsQuery {
            limit: Some(limit),
            cursor,
        };
        let page = platform.control.events(id, &query).await?;
        Ok((page.items, page.next_cursor))
    })
    .await?;
    printer.listed(&listed, "events", |items| {
        let mut table = Table::new(&["nr", "at", "event", "by", "what happened"]);
        for event in items {
            table.row([
                event.sequence.to_string(),
                event.occurred_at.format("%H:%M:%S%.3f").to_string(),
                event.event_type.clone(),
                event.actor.clone(),
                event.text.lines().next().unwrap_or_default().to_owned(),
            ]);
        }
        table
    });
    Ok(Exit::Success)
}

pub async fn node_runs(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let (id, state) = (of_operation(what)?, state(what)?);
    let listed = pages::read(what.limit, |limit, cursor| async move {
        let query = ListNodeRunsQuery {
            limit: Some(limit),
            cursor,
            state,
        };
        let page = platform.control.node_runs(id, &query).await?;
        Ok((page.items, page.next_cursor))
    })
    .await?;
    printer.listed(&listed, "node runs", crate::commands::describe::node_table);
    Ok(Exit::Success)
}

pub async fn gates(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let operation = of_operation(what)?;
    let gates = gate::of(operation, platform).await?;
    printer.value(&gates, || {
        if gates.is_empty() {
            "no gates".to_owned()
        } else {
            gate::list(operation, &gates)
        }
    });
    Ok(Exit::Success)
}

pub async fn claims(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let resource: Option<ResourceId> = what.name.as_deref().map(parsed).transpose()?;
    let operation = what.operation.as_deref().map(find::operation_id).transpose()?;
    let picks = resource.is_some() || operation.is_some();
    let mut listed = pages::read(what.limit.filter(|_| !picks), |limit, cursor| async move {
        let query = PageQuery {
            limit: Some(limit),
            cursor,
        };
        let page = platform.control.claims(&query).await?;
        Ok((page.items, page.next_cursor))
    })
    .await?;
    listed.items.retain(|claim| {
        resource.as_ref().is_none_or(|id| claim.resource_id == *id)
            && operation.is_none_or(|id| {
                claim.holders.iter().any(|holder| holder.operation_id == id)
                    || claim.waiters.iter().any(|waiter| waiter.operation_id == id)
            })
    });
    let listed = listed.at_most(what.limit);
    let said = resource.map_or_else(|| "claims".to_owned(), |id| format!("claims on {id}"));
    printer.listed(&listed, &said, |items| {
        let mut table = Table::new(&["resource", "operation", "holds", "mode", "for", "why"]);
        let now = Utc::now();
        for claim in items {
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

pub async fn projections(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    if let Some(name) = &what.name {
        let item = find::projection(name, platform).await?;
        printer.value(&item, || projection_text(&item));
        return Ok(Exit::Success);
    }
    let items = find::projections(platform).await?;
    printer.list(&items, "projections", || projection_table(&items));
    Ok(Exit::Success)
}

/// One projection with what it has set aside.
fn projection_text(item: &ProjectionView) -> String {
    let mut text = projection_table(std::slice::from_ref(item)).render();
    if !item.parked.is_empty() {
        let mut table = Table::new(&["parked", "revision", "for", "problem"]);
        let now = Utc::now();
        for parked in &item.parked {
            table.row([
                parked.resource_id.clone(),
                parked.revision.to_string(),
                age(parked.since, now),
                parked.problem.clone(),
            ]);
        }
        text.push_str(&format!("\n\n{}", table.render()));
    }
    text
}

fn projection_table(items: &[ProjectionView]) -> Table {
    let mut table = Table::new(&[
        "projection",
        "revision",
        "head",
        "behind",
        "resources",
        "gaps",
        "parked",
    ]);
    for item in items {
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
}
