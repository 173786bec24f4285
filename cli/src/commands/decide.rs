use control_plane_api::{Decision, DecisionRequest, GateState, GateView};
use kernel::id::OperationId;

use crate::args::Decide;
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;
use crate::render::plural;

pub async fn run(what: &Decide, decision: Decision, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let operation = super::intervene::operation_id(&what.operation)?;
    let gate = open_gate(what, operation, platform).await?;
    let covers_digest = match &what.digest {
        None => gate.covers_digest,
        Some(text) => text
            .parse()
            .map_err(|error| CliError::usage(format!("--digest: {error}")))?,
    };
    let request = DecisionRequest {
        decision,
        covers_digest,
        comment: what.comment.clone().unwrap_or_default(),
    };
    let Some(asking) = gate.gate_id else {
        return Err(CliError::new(
            Exit::Conflict,
            format!("it is not the turn of {} yet", gate.node_id),
        ));
    };
    let decided = platform.control.decide(operation, asking, &request).await?;
    let word = if decision == Decision::Approve {
        "approved"
    } else {
        "rejected"
    };
    printer.value(&decided, || {
        let targets: Vec<&str> = gate.targets.iter().map(|target| target.resource_id.as_str()).collect();
        format!(
            "{word} {} of operation {operation}: {} on {}\nbound to {covers_digest}",
            gate.node_id,
            plural(gate.covers.len(), "node"),
            targets.join(", ")
        )
    });
    Ok(Exit::Success)
}

async fn open_gate(what: &Decide, operation: OperationId, platform: &Platform) -> Result<GateView, CliError> {
    let gates = platform.control.gates(operation).await?.items;
    if let Some(name) = &what.gate {
        let known: Vec<String> = gates.iter().map(|gate| gate.node_id.clone()).collect();
        return gates.into_iter().find(|gate| gate.node_id == *name).ok_or_else(|| {
            CliError::new(Exit::NotFound, format!("the operation has no gate {name:?}"))
                .hint(format!("its gates: {}", known.join(", ")))
        });
    }
    let mut open: Vec<GateView> = gates
        .iter()
        .filter(|gate| gate.state == GateState::Open)
        .cloned()
        .collect();
    match (open.len(), open.pop()) {
        (1, Some(gate)) => Ok(gate),
        (0, _) => {
            let stands: Vec<String> = gates
                .iter()
                .map(|gate| {
                    format!(
                        "{} is {}",
                        gate.node_id,
                        serde_json::to_value(gate.state)
                            .unwrap_or_default()
                            .as_str()
                            .unwrap_or("?")
                    )
                })
                .collect();
            let message = if stands.is_empty() {
                "it has no gate".to_owned()
            } else {
                stands.join(", ")
            };
            Err(CliError::new(
                Exit::Conflict,
                format!("no gate of this operation waits for a decision: {message}"),
            ))
        }
        _ => Err(CliError::usage("several gates wait; name one with --gate")
            .hint("'platform get gates --operation ID' shows what each covers")),
    }
}
