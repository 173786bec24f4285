//! Gates as the one who decides sees them: what is asked, by whom, on what, and what exactly a decision
//! binds to.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use control_plane_api::{GateState, GateView, PageQuery, PlanView};
use control_plane_plan::GateClaims;
use kernel::id::OperationId;
use serde_json::{Map, Value};

use crate::error::CliError;
use crate::exit::Exit;
use crate::pages;
use crate::platform::Platform;
use crate::render::{Table, age, duration, mark, plural, word};

/// How many hex digits of a digest are shown in a table, and are the fewest that name one.
pub const SHORT: usize = 12;

/// The gates of an operation, in plan order.
///
/// # Errors
/// When the service refuses.
pub async fn of(operation: OperationId, platform: &Platform) -> Result<Vec<GateView>, CliError> {
    let listed = pages::read(None, |limit, cursor| async move {
        let query = PageQuery {
            limit: Some(limit),
            cursor,
        };
        let page = platform.control.gates(operation, &query).await?;
        Ok((page.items, page.next_cursor))
    })
    .await?;
    Ok(listed.items)
}

/// The gate `node`.
///
/// # Errors
/// Names the gates that there are.
pub fn named(gates: &[GateView], node: &str) -> Result<GateView, CliError> {
    let found = gates.iter().find(|gate| gate.node_id == node);
    found.cloned().ok_or_else(|| {
        let error = CliError::new(Exit::NotFound, format!("the operation has no gate {node:?}"));
        match nodes(gates).as_str() {
            "" => error.hint("it has none at all: nothing of it waits for a decision"),
            known => error.hint(format!("its gates: {known}")),
        }
    })
}

fn nodes(gates: &[GateView]) -> String {
    let names: Vec<&str> = gates.iter().map(|gate| gate.node_id.as_str()).collect();
    names.join(", ")
}

/// Gates in a table, and under it each open one whole.
pub fn list(operation: OperationId, gates: &[GateView]) -> String {
    let mut table = Table::new(&["", "gate", "state", "role", "covers", "targets", "digest", "decided by"]);
    for gate in gates {
        table.row([
            mark(&word(&gate.state)).to_owned(),
            gate.node_id.clone(),
            word(&gate.state),
            gate.role.clone(),
            plural(gate.covers.len(), "node"),
            targets(gate),
            gate.covers_digest.short(),
            gate.decided_by.clone().unwrap_or_default(),
        ]);
    }
    let mut text = table.render();
    let open: Vec<&GateView> = gates.iter().filter(|gate| gate.state == GateState::Open).collect();
    for gate in &open {
        let _ = write!(text, "\n\n{}", block(operation, gate, None));
    }
    if let [gate] = open.as_slice() {
        let _ = write!(text, "\n\n{}", how_to_decide(operation, gate));
    }
    text
}

/// What one types to decide exactly what is shown.
pub fn how_to_decide(operation: OperationId, gate: &GateView) -> String {
    format!(
        "platform approve {operation} --digest {}\nplatform reject  {operation} --digest {0}",
        gate.covers_digest.short()
    )
}

/// One gate whole. With its plan, the scenario and the parameters are told as well.
pub fn block(operation: OperationId, gate: &GateView, plan: Option<&PlanView>) -> String {
    let state = word(&gate.state);
    let mut text = format!(
        "{} gate {} of operation {operation}  {state}",
        mark(&state),
        gate.node_id
    );
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            let _ = write!(
                text,
                "\n  {name:<13} {}",
                value.trim().replace('\n', "\n                ")
            );
        }
    };
    line("asks", gate.message.clone());
    line("requested by", gate.requested_by.clone());
    line("decides", who(gate));
    if let Some(plan) = plan.and_then(|view| view.plan.as_ref()) {
        let scenario = &plan.scenario;
        line(
            "scenario",
            format!(
                "{}/{} {} in {}",
                scenario.pack, scenario.template, scenario.pack_version, plan.environment
            ),
        );
        line("parameters", parameters(&plan.parameters));
    }
    line("plan", format!("revision {}, {}", gate.plan_revision, gate.plan_digest));
    line(
        "covers",
        format!("{}: {}", plural(gate.covers.len(), "node"), gate.covers.join(", ")),
    );
    line("acts on", targets(gate));
    line("risk", risk(gate));
    line("", gate.risk.join("\n"));
    line("claims", claims(gate.claims).to_owned());
    line("standing", standing(gate, Utc::now()));
    line("digest", gate.covers_digest.to_hex());
    text
}

fn who(gate: &GateView) -> String {
    let not = if gate.requester_excluded {
        format!(", not {}", gate.requested_by)
    } else {
        String::new()
    };
    format!("role {}{not}", gate.role)
}

fn targets(gate: &GateView) -> String {
    let targets: Vec<&str> = gate.targets.iter().map(|target| target.resource_id.as_str()).collect();
    targets.join(", ")
}

fn parameters(parameters: &Map<String, Value>) -> String {
    let lines: Vec<String> = parameters
        .iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    lines.join("\n")
}

fn risk(gate: &GateView) -> String {
    let destroys = if gate.destructive.is_empty() {
        "destroys nothing".to_owned()
    } else {
        format!("DESTROYS in {}", gate.destructive.join(", "))
    };
    let Some(radius) = &gate.blast_radius else {
        return destroys;
    };
    let partial = if radius.partial { ", and perhaps more" } else { "" };
    format!(
        "{destroys}; the operation changes {}, {} behind them{partial}",
        plural(radius.direct.len(), "resource"),
        plural(radius.dependents.len(), "resource")
    )
}

const fn claims(claims: GateClaims) -> &'static str {
    match claims {
        GateClaims::Hold => "held while it waits",
        GateClaims::Release => {
            "let go while it waits, taken again afterwards; a resource that moved meanwhile voids the approval"
        }
    }
}

fn standing(gate: &GateView, now: DateTime<Utc>) -> String {
    let mut parts = Vec::new();
    match (gate.state, gate.opened_at) {
        (GateState::Pending, _) => parts.push("it is not its turn yet".to_owned()),
        (GateState::Withdrawn, _) => {
            parts.push("withdrawn: nothing behind it can start any more, so nobody has to decide".to_owned());
        }
        (GateState::NotAsked, _) => {
            parts.push("it was not asked: its condition ruled it out, or its turn did not come".to_owned());
        }
        (GateState::Open, Some(at)) => parts.push(format!("waits for {}", age(at, now))),
        _ => {}
    }
    match (gate.state, gate.expires_at) {
        (GateState::Open, Some(at)) => {
            parts.push(format!(
                "denied in {}, at {}, unless decided",
                duration(at - now),
                time(at)
            ));
        }
        (GateState::Open, None) => parts.push("waits for as long as it takes".to_owned()),
        _ => {}
    }
    if let (Some(by), Some(at)) = (&gate.decided_by, gate.decided_at) {
        parts.push(format!("{} by {by} at {}", word(&gate.state), time(at)));
    }
    if let Some(comment) = gate.comment.as_ref().filter(|comment| !comment.is_empty()) {
        parts.push(format!("\"{comment}\""));
    }
    parts.join("; ")
}

fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::json;

    pub fn gate(node: &str, state: &str, digest: &str) -> GateView {
        serde_json::from_value(json!({
            "gate_id": uuid::Uuid::now_v7(), "node_id": node, "state": state, "message": "Roll out \"Hello\"", "role": "approver",
            "requester_excluded": true, "requested_by": "person:ada", "claims": "hold",
            "opened_at": Utc::now(), "expires_at": Utc::now() + chrono::TimeDelta::hours(2),
            "covers_digest": digest, "plan_id": uuid::Uuid::now_v7(), "plan_digest": "0".repeat(64), "plan_revision": 2,
            "covers": ["rollout[node/a]", "verify[node/a]"],
            "targets": [{"resource_id": "node/a", "uid": uuid::Uuid::now_v7(), "resource_type": "compute.node"}],
            "destructive": ["rollout[node/a]"], "risk": ["The site is gone for a moment."], "may_decide": true,
        }))
        .unwrap()
    }

    #[test]
    fn the_one_who_decides_sees_everything_that_the_decision_binds_to() {
        let digest = "ab".repeat(32);
        let operation = OperationId(uuid::Uuid::now_v7());
        let text = list(operation, &[gate("approve", "open", &digest)]);
        for part in [
            "Roll out \"Hello\"",
            "person:ada",
            "role approver, not person:ada",
            "2 nodes: rollout[node/a], verify[node/a]",
            "DESTROYS in rollout[node/a]",
            "The site is gone for a moment.",
            "denied in 1h59m",
            &digest,
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(
            text.ends_with(&format!("platform reject  {operation} --digest {}", &digest[..SHORT])),
            "{text}"
        );
    }

    #[test]
    fn an_unknown_gate_is_answered_with_those_that_there_are() {
        let gates = [gate("a", "passed", &"1".repeat(64)), gate("b", "open", &"2".repeat(64))];
        assert_eq!(named(&gates, "b").unwrap().state, GateState::Open);
        assert!(named(&gates, "c").unwrap_err().to_string().contains("its gates: a, b"));
        assert!(named(&[], "c").unwrap_err().to_string().contains("none at all"));
    }
}
