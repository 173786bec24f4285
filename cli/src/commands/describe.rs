use std::fmt::Write as _;

use control_plane_api::{NodeRun, Operation};

use super::stalled::{Stalled, stalled};
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
            let id = what
                .name
                .parse()
                .map_err(|_| CliError::usage(format!("{:?} is not the id of a plan", what.name)))?;
            let view = platform.control.plan(id).await?;
            printer.value(&view, || super::plan::text(&view));
        }
        "resource" => {
            let id = what
                .name
                .parse()
                .map_err(|error: kernel::ResourceIdError| CliError::usage(error.to_string()))?;
            let resource = platform.catalog.resource(&id).await?;
            printer.value(&resource, || {
                outline(&serde_json::to_value(&resource).unwrap_or_default())
            });
        }
        "attempt" => {
            let id = what
                .name
                .parse()
                .map_err(|_| CliError::usage(format!("{:?} is not the id of an attempt", what.name)))?;
            let attempt = platform.execution.attempt(id).await?;
            printer.value(&attempt, || {
                outline(&serde_json::to_value(&attempt).unwrap_or_default())
            });
        }
        other => {
            return Err(CliError::usage(format!("cannot describe {other:?}"))
                .hint("one of: resource, operation, plan, attempt"));
        }
    }
    Ok(Exit::Success)
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
    let mut table = Table::new(&["", "node", "state", "run", "plan", "attempts", "took", "message"]);
    for run in runs {
        let took = match (run.started_at, run.ended_at) {
            (Some(start), Some(end)) => duration(end - start),
            _ => String::new(),
        };
        table.row([
            mark(run.state.as_str()).to_owned(),
            run.node_id.clone(),
            super::watch::standing(run),
            run.run.to_string(),
            format!("at revision {}", run.plan_revision),
            run.attempts.len().to_string(),
            took,
            message(run),
        ]);
    }
    table
}

/// A JSON value as an indented outline: names, values, lists with dashes.
fn outline(value: &serde_json::Value) -> String {
    let mut text = String::new();
    write_outline(&mut text, value, 0);
    text.trim_end().to_owned()
}

fn write_outline(text: &mut String, value: &serde_json::Value, depth: usize) {
    let indent = "  ".repeat(depth);
    let simple = |v: &serde_json::Value| match v {
        serde_json::Value::String(s) => Some(s.clone()),
        serde_json::Value::Array(items) if items.is_empty() => Some("none".to_owned()),
        serde_json::Value::Object(fields) if fields.is_empty() => Some("none".to_owned()),
        serde_json::Value::Null => Some("-".to_owned()),
        serde_json::Value::Array(_) | serde_json::Value::Object(_) => None,
        other => Some(other.to_string()),
    };
    match value {
        serde_json::Value::Object(fields) => {
            for (name, inner) in fields {
                match simple(inner) {
                    Some(word) => {
                        let _ = writeln!(text, "{indent}{name}: {}", word.replace('\n', &format!("\n{indent}  ")));
                    }
                    None => {
                        let _ = writeln!(text, "{indent}{name}:");
                        write_outline(text, inner, depth + 1);
                    }
                }
            }
        }
        serde_json::Value::Array(items) => {
            for inner in items {
                match simple(inner) {
                    Some(word) => {
                        let _ = writeln!(text, "{indent}- {word}");
                    }
                    None => {
                        let _ = writeln!(text, "{indent}-");
                        write_outline(text, inner, depth + 1);
                    }
                }
            }
        }
        other => {
            let _ = writeln!(text, "{indent}{}", simple(other).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn an_outline_reads_like_a_form() {
        let text = super::outline(&json!({"a": 1, "b": {"c": "x"}, "d": [], "e": [{"f": null}, "g"]}));
        assert_eq!(text, "a: 1\nb:\n  c: x\nd: none\ne:\n  -\n    f: -\n  - g");
    }
}
