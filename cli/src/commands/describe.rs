use std::fmt::Write as _;

use chrono::Utc;
use control_plane_api::{GateState, NodeRun, Operation};

use super::stalled::{Stalled, stalled};
use super::times::{self, Times};
use super::{gate, outline};
use crate::args::Describe;
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;
use crate::render::{Table, duration, mark};

pub async fn run(what: &Describe, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    match what.kind.trim_end_matches('s') {
        "operation" => {
            let operation = platform
                .control
                .operation(super::intervene::operation_id(&what.name)?)
                .await?;
            let runs = super::watch::node_runs(operation.summary.id, platform).await?;
            let stalled = stalled(&runs, platform).await;
            printer.value(&operation, || operation_text(&operation, &runs, &stalled));
        }
        "plan" => {
            let view = platform.control.plan(super::find::plan_id(&what.name)?).await?;
            printer.value(&view, || super::plan::text(&view));
        }
        "resource" => {
            let id = what
                .name
                .parse()
                .map_err(|error: kernel::ResourceIdError| CliError::usage(error.to_string()))?;
            let resource = platform.catalog.resource(&id).await?;
            printer.value(&resource, || outline::resource(&resource));
        }
        "attempt" => {
            let id = super::find::attempt_id(&what.name)?;
            let attempt = platform.execution.attempt(id).await?;
            printer.value(&attempt, || outline::attempt(&attempt));
        }
        "gate" => gates(&what.name, platform, printer).await?,
        "runner" => {
            let runner = super::find::runner(&what.name, platform).await?;
            printer.value(&runner, || {
                outline::outline(&serde_json::to_value(&runner).unwrap_or_default())
            });
        }
        other => {
            return Err(CliError::usage(format!("cannot describe {other:?}"))
                .hint("one of: resource, operation, gate, plan, attempt, runner"));
        }
    }
    Ok(Exit::Success)
}

/// The gate `OPERATION/GATE`; of an `OPERATION` alone those that wait, else all.
async fn gates(name: &str, platform: &Platform, printer: Printer) -> Result<(), CliError> {
    let (operation, node) = match name.split_once('/') {
        Some((operation, node)) => (operation, Some(node)),
        None => (name, None),
    };
    let operation = super::find::operation_id(operation)?;
    let all = gate::of(operation, platform).await?;
    let shown = match node {
        Some(node) => vec![gate::named(&all, node)?],
        None => {
            let open: Vec<_> = all
                .iter()
                .filter(|gate| gate.state == GateState::Open)
                .cloned()
                .collect();
            if open.is_empty() { all } else { open }
        }
    };
    let mut blocks = Vec::new();
    for gate in &shown {
        let plan = platform.control.plan(gate.plan_id).await?;
        blocks.push(gate::block(operation, gate, Some(&plan)));
    }
    printer.value(&shown, || match blocks.is_empty() {
        true => "no gates".to_owned(),
        false => blocks.join("\n\n"),
    });
    Ok(())
}

/// An operation with its runs, what it waits for and its nodes.
pub fn operation_text(operation: &Operation, runs: &[NodeRun], stalled: &[Stalled]) -> String {
    let summary = &operation.summary;
    let mut text = format!(
        "{} operation {}  {}\n  scenario      {} {} in {}\n  requested by  {}\n  plan          revision {}, {}\n",
        mark(summary.state.as_str()),
        summary.id,
        summary.state.as_str(),
        summary.template,
        operation.plan.scenario.pack_version,
        summary.environment,
        summary.requested_by,
        operation.plan.revision,
        operation.plan.digest,
    );
    if !operation.reason.is_empty() {
        let _ = writeln!(text, "  reason        {}", operation.reason);
    }
    for run in &operation.runs {
        let end = match (run.end, run.ended_at) {
            (Some(end), Some(at)) => format!("{} after {}", end.as_str(), duration(at - run.started_at)),
            _ => "under way".to_owned(),
        };
        let _ = writeln!(
            text,
            "  run {}         {end}, started by {}",
            run.number, run.started_by
        );
    }
    if let Some(message) = &operation.message {
        let _ = writeln!(text, "  message       {message}");
    }
    for waiting in &operation.waiting_for {
        let _ = writeln!(text, "  {}", super::watch::waiting_line(waiting));
    }
    for stalled in stalled {
        let _ = writeln!(text, "  {}", stalled.line());
    }
    let _ = write!(text, "\n{}", node_table(runs).render());
    text
}

fn message(run: &NodeRun) -> String {
    let own = run.message.clone().filter(|message| !message.is_empty());
    own.or_else(|| super::watch::because(run).map(str::to_owned))
        .unwrap_or_default()
}

/// Node runs in plan order.
pub fn node_table(runs: &[NodeRun]) -> Table {
    let now = Utc::now();
    let mut table = Table::new(&[
        "", "node", "state", "run", "plan", "attempts", "waited", "ran", "message",
    ]);
    for run in runs {
        let times = Times::of(run, now);
        let ran = times.map(|times| duration(times.ran)).unwrap_or_default();
        let waited = times.map(|times| duration(times.waited)).unwrap_or_default();
        table.row([
            mark(run.state.as_str()).to_owned(),
            run.node_id.clone(),
            match times::runner(run) {
                Some(runner) => format!("{} on {runner}", super::watch::standing(run)),
                None => super::watch::standing(run),
            },
            run.run.to_string(),
            format!("at revision {}", run.plan_revision),
            run.attempts.len().to_string(),
            waited,
            ran,
            message(run),
        ]);
    }
    table
}
