//! Decisions at gates.
//!
//! Invariant: nobody approves what was not shown or named. An approval wants the digest of what it covers,
//! or a yes to what is printed just before it.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use control_plane_api::{Decision, DecisionRequest, GateState, GateView};
use kernel::id::OperationId;

use super::gate;
use crate::args::Decide;
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;
use crate::render::{plural, word};

pub async fn run(what: &Decide, decision: Decision, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let operation = super::intervene::operation_id(&what.operation)?;
    let gates = gate::of(operation, platform).await?;
    let chosen = chosen(what, operation, &gates)?;
    let Some(asking) = chosen.gate_id else {
        return Err(
            CliError::new(Exit::Conflict, format!("it is not the turn of {} yet", chosen.node_id))
                .hint(format!("'platform watch {operation} --until-gate' returns when it is")),
        );
    };
    if decision == Decision::Approve && what.digest.is_none() && !what.yes {
        agreed(operation, &chosen, platform, printer).await?;
    }
    let request = DecisionRequest {
        decision,
        covers_digest: chosen.covers_digest,
        comment: what.comment.clone().unwrap_or_default(),
    };
    let decided = platform.control.decide(operation, asking, &request).await?;
    let word = if decision == Decision::Approve {
        "approved"
    } else {
        "rejected"
    };
    printer.value(&decided, || {
        let targets: Vec<&str> = chosen
            .targets
            .iter()
            .map(|target| target.resource_id.as_str())
            .collect();
        format!(
            "{word} gate {} of operation {operation}: {}{}\nbound to {}",
            chosen.node_id,
            plural(chosen.covers.len(), "node"),
            if targets.is_empty() {
                String::new()
            } else {
                format!(" on {}", targets.join(", "))
            },
            chosen.covers_digest
        )
    });
    Ok(Exit::Success)
}

/// The gate that is meant, with the digest that is meant.
fn chosen(what: &Decide, operation: OperationId, gates: &[GateView]) -> Result<GateView, CliError> {
    let meant = match &what.gate {
        Some(name) => gate::named(gates, name)?,
        None => the_open_one(gates, what.digest.as_deref(), operation)?,
    };
    let Some(digest) = &what.digest else {
        return Ok(meant);
    };
    let digest = readable(digest)?;
    if meant.covers_digest.to_hex().starts_with(&digest) {
        return Ok(meant);
    }
    Err(CliError::new(
        Exit::Conflict,
        format!(
            "gate {} covers {} now, not {digest}; nothing was decided",
            meant.node_id, meant.covers_digest
        ),
    )
    .hint(format!("look at it again with 'platform describe gate {operation}'")))
}

/// A digest, or enough of its beginning to name it.
fn readable(text: &str) -> Result<String, CliError> {
    let text = text.trim().to_ascii_lowercase();
    let hex = text.chars().all(|c| c.is_ascii_hexdigit());
    if hex && (gate::SHORT..=64).contains(&text.len()) {
        return Ok(text);
    }
    Err(
        CliError::usage(format!("--digest: {text:?} is no digest and no beginning of one")).hint(format!(
            "it has 64 hex digits, of which the first {} are enough; 'platform get gates OPERATION' shows it",
            gate::SHORT
        )),
    )
}

fn the_open_one(gates: &[GateView], digest: Option<&str>, operation: OperationId) -> Result<GateView, CliError> {
    let open: Vec<&GateView> = gates.iter().filter(|gate| gate.state == GateState::Open).collect();
    if let [gate] = open.as_slice() {
        return Ok((*gate).clone());
    }
    if open.is_empty() {
        return Err(none_open(gates, operation));
    }
    let names: Vec<&str> = open.iter().map(|gate| gate.node_id.as_str()).collect();
    let several = CliError::usage(format!("several gates wait: {}", names.join(", "))).hint(format!(
        "name one with --gate; 'platform get gates {operation}' shows what each covers"
    ));
    let Some(digest) = digest else {
        return Err(several);
    };
    let digest = readable(digest)?;
    let mut named = open
        .iter()
        .filter(|gate| gate.covers_digest.to_hex().starts_with(&digest));
    match (named.next(), named.next()) {
        (Some(gate), None) => Ok((*gate).clone()),
        _ => Err(several),
    }
}

fn none_open(gates: &[GateView], operation: OperationId) -> CliError {
    let stands: Vec<String> = gates
        .iter()
        .map(|gate| {
            let by = gate
                .decided_by
                .as_ref()
                .map(|by| format!(" by {by}"))
                .unwrap_or_default();
            format!("{} is {}{by}", gate.node_id, word(&gate.state))
        })
        .collect();
    let (message, hint) = if stands.is_empty() {
        let hint = format!("'platform describe operation {operation}' says what it does");
        ("this operation has no gate".to_owned(), hint)
    } else {
        let hint = format!("'platform watch {operation} --until-gate' returns when one waits");
        (
            format!("no gate of this operation waits for a decision: {}", stands.join(", ")),
            hint,
        )
    };
    CliError::new(Exit::Conflict, message).hint(hint)
}

/// Shows what would be approved and asks for it; where nobody can be asked, says how to say so.
async fn agreed(
    operation: OperationId,
    gate: &GateView,
    platform: &Platform,
    printer: Printer,
) -> Result<(), CliError> {
    let plan = platform.control.plan(gate.plan_id).await?;
    let shown = gate::block(operation, gate, Some(&plan));
    if !gate.may_decide && gate.state == GateState::Open {
        printer.note(shown);
        return Err(may_not(gate));
    }
    let asked = !printer.is_json() && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    printer.note(shown);
    let unsaid = || {
        CliError::usage("nothing was approved: it was not said that this is what is meant").hint(format!(
            "give --digest {}, or --yes for whatever it covers by then",
            gate.covers_digest.short()
        ))
    };
    if !asked {
        return Err(unsaid());
    }
    let answer = tokio::task::spawn_blocking(|| {
        let mut out = std::io::stderr().lock();
        write!(out, "\nApprove this? Only 'yes' approves: ")?;
        out.flush()?;
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line)?;
        Ok::<_, std::io::Error>(line)
    });
    let answer = answer
        .await
        .map_err(|error| CliError::new(Exit::Internal, error.to_string()))??;
    if answer.trim() == "yes" { Ok(()) } else { Err(unsaid()) }
}

fn may_not(gate: &GateView) -> CliError {
    let excluded = if gate.requester_excluded {
        format!(", and is not {}, who asked for the operation", gate.requested_by)
    } else {
        String::new()
    };
    CliError::new(
        Exit::Forbidden,
        format!(
            "you may not decide {}: whoever does has the role {}{excluded}",
            gate.node_id, gate.role
        ),
    )
    .hint("somebody else decides it; 'platform token mint' makes tokens where the platform's key is")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::gate::tests::gate;

    fn decide(gate: Option<&str>, digest: Option<&str>) -> Decide {
        Decide {
            operation: String::new(),
            gate: gate.map(str::to_owned),
            digest: digest.map(str::to_owned),
            yes: false,
            comment: None,
        }
    }

    fn chosen_of(gates: &[GateView], what: &Decide) -> Result<GateView, CliError> {
        chosen(what, OperationId(uuid::Uuid::nil()), gates)
    }

    #[test]
    fn the_beginning_of_a_digest_names_a_gate_and_binds_to_the_whole() {
        let (one, two) = ("1".repeat(64), "2".repeat(64));
        let gates = [gate("a", "open", &one), gate("b", "open", &two)];
        let found = chosen_of(&gates, &decide(None, Some(&two[..12]))).unwrap();
        assert_eq!((found.node_id.as_str(), found.covers_digest.to_hex()), ("b", two));
        assert_eq!(chosen_of(&gates, &decide(None, None)).unwrap_err().exit, Exit::Usage);
        let error = chosen_of(&gates, &decide(None, Some(&"1".repeat(11)))).unwrap_err();
        assert!(error.to_string().contains("first 12"), "{error}");
    }

    #[test]
    fn a_digest_that_is_no_longer_so_decides_nothing() {
        let gates = [gate("a", "open", &"1".repeat(64))];
        for name in [None, Some("a")] {
            let error = chosen_of(&gates, &decide(name, Some(&"2".repeat(12)))).unwrap_err();
            assert_eq!(error.exit, Exit::Conflict);
            assert!(error.message.contains("nothing was decided"), "{error}");
        }
    }

    #[test]
    fn where_nothing_waits_it_says_how_the_gates_stand() {
        let gates = [gate("a", "rejected", &"1".repeat(64))];
        let error = chosen_of(&gates, &decide(None, None)).unwrap_err();
        assert!(error.message.contains("a is rejected"), "{error}");
        assert!(
            chosen_of(&[], &decide(None, None))
                .unwrap_err()
                .message
                .contains("has no gate")
        );
    }
}
