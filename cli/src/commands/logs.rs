//! Output of jobs: of one attempt as it is; of an operation with each attempt told apart.
//!
//! Invariants: for programs every chunk is one line of JSON that names its attempt; the bytes of a single
//! attempt are printed as they are; what has not finished is followed only when asked.

use std::collections::HashSet;
use std::time::Duration;

use client_kit::ClientError;
use control_plane_api::OperationState;
use execution_plane_api::{AttemptListQuery, AttemptSummary, OutputChunk, OutputEvent};
use futures::StreamExt as _;
use kernel::id::{AttemptId, OperationId};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::lines::Lines;
use crate::args::Logs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::pages;
use crate::platform::Platform;
use crate::printer::Printer;
use crate::render::word;

/// How often a followed operation is asked for further attempts.
const LOOK: Duration = Duration::from_millis(500);
/// Chunks that may wait to be printed.
const KEPT: usize = 64;

/// An attempt whose output is shown.
#[derive(Debug, Clone)]
struct Shown {
    attempt: AttemptId,
    node: String,
}

pub async fn run(logs: &Logs, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let Ok(id) = logs.id.parse::<uuid::Uuid>() else {
        return Err(
            CliError::usage(format!("{:?} is not the id of an attempt or an operation", logs.id))
                .hint("'platform get operations' and 'platform get attempts --operation ID' list them"),
        );
    };
    let attempts = of_operation(id.into(), logs.node.as_deref(), platform).await?;
    let operation = OperationId(id);
    if attempts.is_empty() {
        return without_attempts(logs, id, platform, printer).await;
    }
    if logs.follow {
        return follow_operation(operation, logs, platform, printer).await;
    }
    let several = attempts.len() > 1;
    for shown in &attempts {
        if several {
            printer.say(format!("── {} ({})", shown.node, shown.attempt));
        }
        print(shown, platform, printer).await?;
    }
    Ok(Exit::Success)
}

/// The id is that of an attempt, or of an operation that has none (of that node) yet.
async fn without_attempts(
    logs: &Logs,
    id: uuid::Uuid,
    platform: &Platform,
    printer: Printer,
) -> Result<Exit, CliError> {
    if logs.node.is_none() {
        match platform.execution.attempt(AttemptId(id)).await {
            Ok(attempt) => {
                let shown = Shown {
                    attempt: AttemptId(id),
                    node: attempt.summary.plan_node_id,
                };
                return of_attempt(&shown, logs.follow, platform, printer).await;
            }
            Err(error) if error.status() == Some(404) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let operation = OperationId(id);
    let known = match platform.control.operation(operation).await {
        Ok(known) => known,
        Err(error) if error.status() == Some(404) => {
            return Err(
                CliError::new(Exit::NotFound, format!("there is no attempt and no operation {id}"))
                    .hint("'platform get operations' and 'platform get attempts --operation ID' list them"),
            );
        }
        Err(error) => return Err(error.into()),
    };
    if logs.follow && !known.summary.state.is_end() {
        return follow_operation(operation, logs, platform, printer).await;
    }
    let of = logs
        .node
        .as_ref()
        .map_or(String::new(), |node| format!(" of node {node}"));
    let state = known.summary.state.as_str();
    Err(CliError::new(
        Exit::NotFound,
        format!("operation {id} has no attempt{of}, so nothing was printed; it is {state}"),
    )
    .hint(format!(
        "'platform get node-runs {id}' shows its nodes; -f waits for output"
    )))
}

/// Attempts of an operation, oldest first.
async fn of_operation(operation: OperationId, node: Option<&str>, platform: &Platform) -> Result<Vec<Shown>, CliError> {
    let listed = pages::read(None, |limit, cursor| async move {
        let query = AttemptListQuery {
            operation_id: Some(operation),
            limit: Some(limit),
            cursor,
            ..AttemptListQuery::default()
        };
        let page = platform.execution.attempts(&query).await?;
        Ok((page.items, page.next_cursor))
    })
    .await?;
    let mut found: Vec<AttemptSummary> = listed.items;
    found.retain(|attempt| node.is_none_or(|node| node == attempt.plan_node_id));
    found.sort_by_key(|attempt| attempt.queued_at);
    let shown = found.into_iter().map(|attempt| Shown {
        attempt: attempt.attempt_id,
        node: attempt.plan_node_id,
    });
    Ok(shown.collect())
}

/// One attempt alone: its output as it is.
async fn of_attempt(shown: &Shown, follow: bool, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    if !follow {
        print(shown, platform, printer).await?;
        return Ok(Exit::Success);
    }
    let mut tail = std::pin::pin!(platform.execution.tail(shown.attempt, 0));
    while let Some(event) = tail.next().await {
        match event? {
            OutputEvent::Chunk(chunk) if printer.is_json() => printer.event(&as_json(shown, &chunk), || None),
            OutputEvent::Chunk(chunk) => printer.raw(&chunk.data),
            OutputEvent::End(end) if printer.is_json() => printer.event(&ended(shown, word(&end.state)), || None),
            OutputEvent::End(end) => printer.note(format!("── ended: {}", word(&end.state))),
        }
        if !printer.is_heard() {
            break;
        }
    }
    Ok(Exit::Success)
}

/// What an attempt has printed so far.
async fn print(shown: &Shown, platform: &Platform, printer: Printer) -> Result<(), CliError> {
    if !printer.is_json() {
        printer.raw(&platform.execution.whole_output(shown.attempt).await?);
        return Ok(());
    }
    let last = platform.execution.attempt(shown.attempt).await?.output.last_sequence;
    if last == 0 {
        return Ok(());
    }
    let mut tail = std::pin::pin!(platform.execution.tail(shown.attempt, 0));
    while let Some(event) = tail.next().await {
        let OutputEvent::Chunk(chunk) = event? else {
            break;
        };
        printer.event(&as_json(shown, &chunk), || None);
        if chunk.sequence >= last || !printer.is_heard() {
            break;
        }
    }
    Ok(())
}

/// A chunk for programs: the bytes as base64, and as text where they are text.
fn as_json(shown: &Shown, chunk: &OutputChunk) -> Value {
    let mut value = serde_json::to_value(chunk).unwrap_or_default();
    value["attempt_id"] = json!(shown.attempt);
    value["node_id"] = json!(shown.node);
    if let Ok(text) = std::str::from_utf8(&chunk.data) {
        value["text"] = json!(text);
    }
    value
}

fn ended(shown: &Shown, state: String) -> Value {
    json!({"attempt_id": shown.attempt, "node_id": shown.node, "end": state})
}

/// Follows all attempts of an operation at once, those to come too, until its run is over. For people each
/// line begins with its node.
async fn follow_operation(
    operation: OperationId,
    logs: &Logs,
    platform: &Platform,
    printer: Printer,
) -> Result<Exit, CliError> {
    let (sender, mut events) = mpsc::channel(KEPT);
    let mut known: HashSet<AttemptId> = HashSet::new();
    let mut tails = tokio::task::JoinSet::new();
    let mut lines = Lines::default();
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut over = false;
    loop {
        tokio::select! {
            _ = looks.tick(), if !over => {
                // Asked before the attempts are: what had its end has no further ones.
                let state = platform.control.operation(operation).await?.summary.state;
                for shown in of_operation(operation, logs.node.as_deref(), platform).await? {
                    if known.insert(shown.attempt) {
                        tails.spawn(tail(shown, platform.execution.clone(), sender.clone()));
                    }
                }
                over = state.is_end() || state == OperationState::Unresolved;
            }
            Some((shown, event)) = events.recv() => tell(&shown, event?, &mut lines, printer),
            Some(_) = tails.join_next(), if !tails.is_empty() => {}
            else => break,
        }
        if !printer.is_heard() || (over && tails.is_empty() && events.is_empty()) {
            break;
        }
    }
    lines.rest(|node, line| printer.say(format!("{node} | {line}")));
    Ok(Exit::Success)
}

type Told = (Shown, Result<OutputEvent, ClientError>);

async fn tail(shown: Shown, execution: execution_plane_api::ExecutionPlane, sender: mpsc::Sender<Told>) {
    let mut events = std::pin::pin!(execution.tail(shown.attempt, 0));
    while let Some(event) = events.next().await {
        if sender.send((shown.clone(), event)).await.is_err() {
            return;
        }
    }
}

fn tell(shown: &Shown, event: OutputEvent, lines: &mut Lines, printer: Printer) {
    match event {
        OutputEvent::Chunk(chunk) if printer.is_json() => printer.event(&as_json(shown, &chunk), || None),
        OutputEvent::End(end) if printer.is_json() => printer.event(&ended(shown, word(&end.state)), || None),
        OutputEvent::Chunk(chunk) => {
            lines.push(&shown.node, &chunk.data, |node, line| {
                printer.say(format!("{node} | {line}"));
            });
        }
        OutputEvent::End(end) => {
            lines.end(&shown.node, |node, line| printer.say(format!("{node} | {line}")));
            printer.say(format!("{} ── ended: {}", shown.node, word(&end.state)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_for_programs_names_its_attempt_and_keeps_its_bytes() {
        let shown = Shown {
            attempt: AttemptId(uuid::Uuid::now_v7()),
            node: "rollout[node/a]".into(),
        };
        let chunk = |data: &'static [u8]| OutputChunk {
            sequence: 3,
            byte_offset: 10,
            stream: execution_plane_api::OutputStream::Stdout,
            at: chrono::Utc::now(),
            data: data.into(),
        };
        let value = as_json(&shown, &chunk(b"hello\n"));
        assert_eq!(value["attempt_id"], json!(shown.attempt));
        assert_eq!(
            (value["text"].as_str(), value["data"].as_str()),
            (Some("hello\n"), Some("aGVsbG8K"))
        );
        let value = as_json(&shown, &chunk(b"\xff"));
        assert!(value.get("text").is_none() && value["data"] == "/w==");
    }
}
