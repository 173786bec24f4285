use audit::AuditQuery;

use crate::args::{Get, Service};
use crate::commands::audit::page;
use crate::error::CliError;
use crate::exit::Exit;
use crate::pages;
use crate::platform::Platform;
use crate::printer::Printer;
use crate::render::Table;

pub async fn facts(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let service = what.service.unwrap_or(Service::ControlPlane);
    let listed = pages::read(what.limit, |limit, cursor| async move {
        let query = AuditQuery {
            limit: Some(limit),
            cursor,
        };
        let page = page(platform, service, &query).await?;
        Ok((page.items, page.next_cursor))
    })
    .await?;
    printer.listed(&listed, "audit facts", |items| {
        let mut table = Table::new(&["at", "who", "from", "did", "on", "result", "reason"]);
        for fact in items {
            table.row([
                fact.occurred_at.format("%Y-%m-%d %H:%M:%S").to_string(),
                fact.actor.clone(),
                fact.remote_address.clone(),
                fact.action.clone(),
                fact.subject.clone(),
                fact.result.clone(),
                fact.reason.clone(),
            ]);
        }
        table
    });
    Ok(Exit::Success)
}
