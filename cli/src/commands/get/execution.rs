//! What execution-plane holds.

use chrono::Utc;
use execution_plane_api::{Attempt, AttemptListQuery, AttemptSummary, CommandPolicy, Runner, RunnerListQuery};

use super::state;
use crate::args::Get;
use crate::commands::find;
use crate::error::CliError;
use crate::exit::Exit;
use crate::pages;
use crate::platform::Platform;
use crate::printer::Printer;
use crate::render::{Table, age, size, word};

pub async fn attempts(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    if let Some(name) = &what.name {
        let attempt: Attempt = platform.execution.attempt(find::attempt_id(name)?).await?;
        printer.value(&attempt, || {
            attempt_table(std::slice::from_ref(&attempt.summary)).render()
        });
        return Ok(Exit::Success);
    }
    let filter = AttemptListQuery {
        operation_id: what.operation.as_deref().map(find::operation_id).transpose()?,
        state: state(what)?,
        ..AttemptListQuery::default()
    };
    let listed = pages::read(what.limit, |limit, cursor| {
        let query = AttemptListQuery {
            limit: Some(limit),
            cursor,
            ..filter.clone()
        };
        async move {
            let page = platform.execution.attempts(&query).await?;
            Ok((page.items, page.next_cursor))
        }
    })
    .await?;
    printer.listed(&listed, "attempts", attempt_table);
    Ok(Exit::Success)
}

fn attempt_table(attempts: &[AttemptSummary]) -> Table {
    let mut table = Table::new(&["attempt", "node", "job", "state", "queued", "ran for"]);
    let now = Utc::now();
    for item in attempts {
        let ran = item
            .started_at
            .map(|start| age(start, item.finished_at.unwrap_or(now)))
            .unwrap_or_default();
        table.row([
            item.attempt_id.to_string(),
            item.plan_node_id.clone(),
            item.job_type.as_str().into(),
            word(&item.state),
            format!("{} ago", age(item.queued_at, now)),
            ran,
        ]);
    }
    table
}

pub async fn artifacts(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let attempt = find::attempt_id(what.name.as_deref().unwrap_or_default())?;
    let items = find::artifacts(attempt, platform).await?;
    printer.listed(&pages::Listed::whole(items).at_most(what.limit), "artifacts", |items| {
        let mut table = Table::new(&["artifact", "type", "sensitivity", "size", "sha256"]);
        for item in items {
            table.row([
                item.name.clone().unwrap_or_default(),
                item.artifact_type.clone(),
                word(&item.sensitivity),
                item.size_bytes.map(size).unwrap_or_default(),
                item.sha256.map(|digest| digest.short()).unwrap_or_default(),
            ]);
        }
        table
    });
    Ok(Exit::Success)
}

pub async fn runners(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    if let Some(name) = &what.name {
        let runner = find::runner(name, platform).await?;
        printer.value(&runner, || runner_table(std::slice::from_ref(&runner)).render());
        return Ok(Exit::Success);
    }
    let listed = pages::read(what.limit, |limit, cursor| {
        let query = RunnerListQuery {
            limit: Some(limit),
            cursor,
        };
        async move {
            let page = platform.execution.runners(&query).await?;
            Ok((page.items, page.next_cursor))
        }
    })
    .await?;
    printer.listed(&listed, "runners", runner_table);
    Ok(Exit::Success)
}

fn runner_table(runners: &[Runner]) -> Table {
    let mut table = Table::new(&["runner", "status", "in use", "jobs", "isolation", "serves", "last seen"]);
    let now = Utc::now();
    for item in runners {
        let jobs: Vec<&str> = item.job_types.iter().map(|job| job.as_str()).collect();
        let grades: Vec<String> = item.isolation.iter().map(word).collect();
        let serves = if item.environments.is_empty() {
            "every environment".to_owned()
        } else {
            item.environments.join(" ")
        };
        table.row([
            item.name.clone(),
            word(&item.status),
            format!("{} of {}", item.in_use, item.capacity),
            jobs.join(" "),
            grades.join(" "),
            serves,
            format!("{} ago", age(item.last_seen_at, now)),
        ]);
    }
    table
}

pub async fn policy(what: &Get, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let policy = platform
        .execution
        .command_policy(what.name.as_deref().unwrap_or_default())
        .await?;
    printer.value(&policy, || policy_text(&policy));
    Ok(Exit::Success)
}

fn policy_text(policy: &CommandPolicy) -> String {
    let mut text = format!(
        "command policy {} version {}, since {}",
        policy.name,
        policy.version,
        policy.created_at.format("%Y-%m-%d %H:%M:%S UTC")
    );
    for pattern in &policy.body.allow {
        text.push_str(&format!("\n  allows        {}", pattern.argv.join(" ")));
    }
    for path in &policy.body.paths {
        text.push_str(&format!("\n  programs in   {path}"));
    }
    text.push_str(if policy.body.forbid_shell {
        "\n  shells        forbidden"
    } else {
        "\n  shells        allowed as patterns say"
    });
    text
}
