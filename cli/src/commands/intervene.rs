//! Interventions: an operator changes the course of an operation.

use control_plane_api::{Intervention, InterventionRequest, NodeRunState, Resolution};
use kernel::id::OperationId;

pub use super::find::operation_id;
use crate::args::{Cancel, Intervention as Plain, NodeIntervention, Outcome, Resolve, Retry};
use crate::commands::{ask, watch};
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;

async fn apply(
    operation: &str,
    intervention: Intervention,
    reason: Option<&String>,
    platform: &Platform,
    printer: Printer,
) -> Result<OperationId, CliError> {
    let id = operation_id(operation)?;
    let request = InterventionRequest {
        intervention,
        reason: reason.cloned().unwrap_or_default(),
        expected_version: None,
    };
    let outcome = match platform.control.intervene(id, &request).await {
        Ok(outcome) => outcome,
        Err(error) => return Err(with_command(error.into(), id, platform).await),
    };
    printer.say(format!(
        "operation {id} is {}",
        outcome.operation.summary.state.as_str()
    ));
    Ok(id)
}

/// A refusal with the very command that settles what is in the way, where an outcome is not known.
async fn with_command(error: CliError, id: OperationId, platform: &Platform) -> CliError {
    let settles = matches!(error.exit, Exit::Conflict | Exit::Refused);
    let runs = match settles {
        true => watch::node_runs(id, platform).await.unwrap_or_default(),
        false => Vec::new(),
    };
    let unresolved = runs.iter().find(|run| run.state == NodeRunState::Unresolved);
    match unresolved {
        Some(run) => error.hint(format!(
            "the outcome of {node} is not known: find out, then 'platform resolve {id} {node} --outcome failed -m WHY' \
             (or --outcome succeeded with --evidence)",
            node = run.node_id
        )),
        None => error,
    }
}

async fn and_tell(id: OperationId, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    if printer.is_json() {
        printer.value(&platform.control.operation(id).await?, String::new);
    }
    Ok(Exit::Success)
}

pub async fn retry(what: &Retry, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let intervention = Intervention::Retry {
        nodes: what.node.clone(),
        set: ask::assignments(&what.set)?,
    };
    let id = apply(&what.operation, intervention, what.reason.as_ref(), platform, printer).await?;
    if what.no_wait {
        return and_tell(id, platform, printer).await;
    }
    watch::follow(id, what.until_gate, platform, printer).await
}

pub async fn skip(what: &NodeIntervention, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let intervention = Intervention::Skip {
        node_id: what.node.clone(),
    };
    let before = not_started(&what.operation, platform).await?;
    let id = apply(&what.operation, intervention, Some(&what.reason), platform, printer).await?;
    let mut left_out = not_started(&what.operation, platform).await?;
    left_out.retain(|node| !before.contains(node) && *node != what.node);
    if !left_out.is_empty() {
        printer.say(format!("not started without it: {}", left_out.join(", ")));
        printer.say(format!(
            "such an operation does not read succeeded; 'platform retry {id} --node {}' runs them once it has ended",
            what.node
        ));
    }
    and_tell(id, platform, printer).await
}

/// Nodes whose turn will not come.
async fn not_started(operation: &str, platform: &Platform) -> Result<Vec<String>, CliError> {
    let runs = watch::node_runs(operation_id(operation)?, platform).await?;
    let never = runs
        .into_iter()
        .filter(|run| run.kind != "join" && watch::standing(run) == "not started");
    Ok(never.map(|run| run.node_id).collect())
}

pub async fn pause(what: &Plain, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let id = apply(
        &what.operation,
        Intervention::Pause,
        what.reason.as_ref(),
        platform,
        printer,
    )
    .await?;
    and_tell(id, platform, printer).await
}

pub async fn resume(what: &Plain, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let id = apply(
        &what.operation,
        Intervention::Resume,
        what.reason.as_ref(),
        platform,
        printer,
    )
    .await?;
    and_tell(id, platform, printer).await
}

pub async fn cancel(what: &Cancel, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let intervention = if what.force {
        Intervention::ForceCancel
    } else {
        Intervention::Cancel
    };
    let id = apply(&what.operation, intervention, what.reason.as_ref(), platform, printer).await?;
    if what.no_wait {
        return and_tell(id, platform, printer).await;
    }
    // An outcome that is not known waits for a person, not for time.
    match watch::follow(id, true, platform, printer).await? {
        Exit::Cancelled => Ok(Exit::Success),
        other => Ok(other),
    }
}

pub async fn resolve(what: &Resolve, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let resolution = match what.outcome {
        Outcome::Succeeded => Resolution::Succeeded,
        Outcome::Failed => Resolution::Failed,
    };
    let evidence = match &what.evidence {
        None => Vec::new(),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|e| CliError::usage(format!("{} cannot be read: {e}", path.display())))?;
            serde_json::from_str(&text)
                .map_err(|e| CliError::usage(format!("{} is no list of evidence: {e}", path.display())))?
        }
    };
    let intervention = Intervention::Resolve {
        node_id: what.node.clone(),
        resolution,
        evidence,
    };
    let id = apply(&what.operation, intervention, Some(&what.reason), platform, printer).await?;
    and_tell(id, platform, printer).await
}
