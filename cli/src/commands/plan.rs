use std::fmt::Write as _;

use chrono::TimeDelta;
use control_plane_api::{PlanRequest, PlanView};
use control_plane_plan::{NodeKind, Plan, PlanNode, SlotExplanation};

use crate::args::Ask;
use crate::commands::ask;
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;
use crate::render::{Table, duration, plural};

pub async fn run(what: &Ask, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let request = ask::request(what)?;
    let view = preview(&request, what.wait_for.as_deref(), platform).await?;
    printer.value(&view, || text(&view));
    Ok(if view.satisfiable { Exit::Success } else { Exit::Refused })
}

/// Asks for a preview.
///
/// # Errors
/// A refusal that is about parameters says how they are given.
pub async fn preview(request: &PlanRequest, wait_for: Option<&str>, platform: &Platform) -> Result<PlanView, CliError> {
    let answer = platform.control.preview(request, wait_for).await;
    answer.map_err(|error| {
        let error = CliError::from(error);
        let of_parameters = error.faults.iter().any(|fault| fault.place.starts_with("/parameters"));
        match of_parameters && error.hint.is_none() {
            true => error.hint("parameters are given as -p NAME=VALUE"),
            false => error,
        }
    })
}

/// A preview as a person reads it: what would happen, on what, and why.
pub fn text(view: &PlanView) -> String {
    let mut out = String::new();
    let _ = match (&view.plan, view.digest) {
        (Some(plan), Some(digest)) => writeln!(
            out,
            "Plan {}  {}/{} {} in {}\ndigest {digest}\n",
            view.id, plan.scenario.pack, plan.scenario.template, plan.scenario.pack_version, plan.environment
        ),
        _ => writeln!(out, "No plan: the requirements cannot be met.\n"),
    };
    for slot in &view.advice.slots {
        slot_text(&mut out, slot);
    }
    if let Some(plan) = &view.plan {
        nodes_text(&mut out, plan);
        changes_text(&mut out, view, plan);
    }
    let freshness = &view.advice.freshness;
    let _ = write!(out, "Made from catalog revision {}", freshness.revision);
    let _ = match (freshness.lag_revisions, freshness.applied_at) {
        (0, _) => write!(out, ", up to date as far as known."),
        (lag, Some(at)) => write!(
            out,
            ", {lag} behind, last applied {} ago.",
            duration(view.created_at - at)
        ),
        (lag, None) => write!(out, ", {lag} behind."),
    };
    out
}

fn slot_text(out: &mut String, slot: &SlotExplanation) {
    let mark = if slot.satisfied { "✔" } else { "✘" };
    let _ = writeln!(out, "{mark} slot {}: {}", slot.slot, slot.requirement);
    if slot.satisfied {
        let bound: Vec<&str> = slot.bound.iter().map(kernel::ResourceId::as_str).collect();
        let _ = writeln!(out, "    bound to {}", bound.join(", "));
    }
    if let Some(problem) = &slot.problem {
        let _ = writeln!(out, "    {problem}");
    }
    if let Some(remedy) = &slot.remedy {
        let _ = writeln!(out, "    would do: {remedy}");
    }
    if !slot.satisfied {
        for refusal in &slot.refusals {
            let _ = write!(
                out,
                "    ✘ {}: {} ({})",
                refusal.resource_id, refusal.constraint, refusal.found
            );
            let _ = match &refusal.remedy {
                Some(remedy) => writeln!(out, "; would do: {remedy}"),
                None => writeln!(out),
            };
        }
    } else if !slot.refused_by.is_empty() {
        let by: Vec<String> = slot
            .refused_by
            .iter()
            .map(|(why, count)| format!("{count} by {why}"))
            .collect();
        let _ = writeln!(
            out,
            "    {} considered; refused: {}",
            plural(slot.candidates_considered as usize, "candidate"),
            by.join(", ")
        );
    }
    out.push('\n');
}

fn nodes_text(out: &mut String, plan: &Plan) {
    let mut table = Table::new(&["node", "does", "after", "limits"]);
    for node in &plan.nodes {
        let needs: Vec<&str> = node.needs.iter().map(|need| need.node.as_str()).collect();
        table.row([node.id.clone(), action(node), after(&needs), limits(node)]);
    }
    let _ = writeln!(out, "{}\n", table.render());
    for lane in &plan.lanes {
        let items: Vec<&str> = lane.items.iter().map(|item| item.key.as_str()).collect();
        let _ = writeln!(
            out,
            "Lane {}: {} at a time, stops after {}: {}\n",
            lane.id,
            lane.max_parallel,
            plural(lane.max_failures as usize + 1, "failure"),
            items.join(" → ")
        );
    }
}

/// The first nodes of a list that may be long; `-o json` has all of them.
fn after(needs: &[&str]) -> String {
    const SHOWN: usize = 2;
    let mut text = needs[..needs.len().min(SHOWN)].join(", ");
    if needs.len() > SHOWN {
        let _ = write!(text, ", +{}", needs.len() - SHOWN);
    }
    text
}

fn action(node: &PlanNode) -> String {
    let what = match &node.action {
        NodeKind::Job(job) => {
            let word = if job.mutating { "" } else { " (reads only)" };
            format!(
                "{}{word} on {}",
                job.job_type.as_str(),
                plural(job.targets.len(), "target")
            )
        }
        NodeKind::Gate(gate) => {
            let who = if gate.requester_excluded {
                ", not the requester"
            } else {
                ""
            };
            format!("waits for approval by role {}{who}", gate.role)
        }
        NodeKind::ResourceUpdate(update) => format!("tells the catalog about {}", update.resource_id),
        NodeKind::Join => "waits for all of them".to_owned(),
    };
    match (node.skipped, node.destructive) {
        (true, _) => format!("skipped: {what}"),
        (_, true) => format!("DESTROYS: {what}"),
        _ => what,
    }
}

fn limits(node: &PlanNode) -> String {
    match &node.action {
        NodeKind::Job(job) => {
            let tries = if job.retry.max_attempts > 1 {
                format!(", {} attempts", job.retry.max_attempts)
            } else {
                String::new()
            };
            format!("{}{tries}", seconds(job.timeout_seconds))
        }
        NodeKind::Gate(gate) => gate
            .expires_after_seconds
            .map(|limit| format!("denied after {}", seconds(limit)))
            .unwrap_or_default(),
        _ => String::new(),
    }
}

fn seconds(limit: impl TryInto<i64>) -> String {
    let span = limit.try_into().ok().and_then(TimeDelta::try_seconds);
    span.map_or_else(|| "no limit".to_owned(), duration)
}

fn changes_text(out: &mut String, view: &PlanView, plan: &Plan) {
    for change in &plan.capability_changes {
        let mut words: Vec<String> = change.add.iter().map(|c| format!("+{c}")).collect();
        words.extend(change.remove.iter().map(|c| format!("-{c}")));
        let _ = writeln!(out, "{}: {}", change.resource_id, words.join(" "));
    }
    let radius = &view.advice.blast_radius;
    let partial = if radius.partial { ", and perhaps more" } else { "" };
    let _ = writeln!(
        out,
        "\nBlast radius: changes {}, {} behind them{partial}.",
        plural(radius.direct.len(), "resource"),
        plural(radius.dependents.len(), "resource")
    );
    for note in &view.advice.risk {
        let _ = writeln!(out, "Risk: {note}");
    }
    if let Some(estimate) = &view.advice.estimate {
        let seconds = i64::try_from(estimate.seconds).unwrap_or(i64::MAX);
        let span = TimeDelta::try_seconds(seconds).unwrap_or(TimeDelta::MAX);
        let _ = writeln!(
            out,
            "Took about {} in {} before, gates not counted.",
            duration(span),
            plural(estimate.samples as usize, "operation")
        );
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_node_after_many_others_names_the_first_two() {
        for (needs, text) in [
            (&[][..], ""),
            (&["a", "b"], "a, b"),
            (&["a", "b", "c", "d"], "a, b, +2"),
        ] {
            assert_eq!(super::after(needs), text);
        }
    }
}
