//! What execution-plane holds.

use chrono::Utc;
use execution_plane_api::{AttemptListQuery, RunnerListQuery};

use super::word;
use crate::args::Get;
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;
use crate::render::{Table, age};

pub async fn attempts(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let operation_id = what
        .operation
        .as_deref()
        .map(crate::commands::intervene::operation_id)
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

pub async fn runners(platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
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
