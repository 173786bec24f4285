use execution_plane_api::{AttemptListQuery, OutputEvent};
use futures::StreamExt as _;
use kernel::id::AttemptId;
use serde_json::json;

use crate::args::Logs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;

pub async fn run(logs: &Logs, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let attempts = attempts(logs, platform).await?;
    let several = attempts.len() > 1;
    for (attempt, node) in attempts {
        if several {
            printer.say(format!("── {node} ({attempt})"));
        }
        if logs.follow {
            follow(attempt, platform, printer).await?;
        } else {
            printer.raw(&platform.execution.output(attempt).await?);
        }
    }
    Ok(Exit::Success)
}

/// The attempts meant: the one named, or those of the operation named, oldest first.
async fn attempts(logs: &Logs, platform: &Platform) -> Result<Vec<(AttemptId, String)>, CliError> {
    let Ok(id) = logs.id.parse::<uuid::Uuid>() else {
        return Err(
            CliError::usage(format!("{:?} is not the id of an attempt or an operation", logs.id))
                .hint("'platform get operations' and 'platform get attempts --operation ID' list them"),
        );
    };
    let mut query = AttemptListQuery {
        operation_id: Some(id.into()),
        limit: Some(1000),
        ..AttemptListQuery::default()
    };
    let mut found = Vec::new();
    loop {
        let page = platform.execution.attempts(&query).await?;
        found.extend(page.items);
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            break;
        }
    }
    found.retain(|attempt| logs.node.as_ref().is_none_or(|node| *node == attempt.plan_node_id));
    found.sort_by_key(|attempt| attempt.queued_at);
    if found.is_empty() && logs.node.is_none() {
        let attempt = platform.execution.attempt(AttemptId(id)).await?;
        return Ok(vec![(AttemptId(id), attempt.summary.plan_node_id)]);
    }
    if found.is_empty() {
        return Err(
            CliError::new(Exit::NotFound, "this operation has no attempt of that node")
                .hint("'platform get attempts --operation ID' lists its attempts"),
        );
    }
    Ok(found
        .into_iter()
        .map(|attempt| (attempt.attempt_id, attempt.plan_node_id))
        .collect())
}

async fn follow(attempt: AttemptId, platform: &Platform, printer: Printer) -> Result<(), CliError> {
    let mut tail = std::pin::pin!(platform.execution.tail(attempt, 0));
    while let Some(event) = tail.next().await {
        if !printer.is_heard() {
            break;
        }
        match event? {
            OutputEvent::Chunk(chunk) if printer.is_json() => printer.event(&chunk, || None),
            OutputEvent::Chunk(chunk) => printer.raw(&chunk.data),
            OutputEvent::End(end) => {
                printer.event(&json!({"end": end}), || None);
                if !printer.is_json() {
                    printer.note(format!(
                        "── ended: {}",
                        serde_json::to_value(end.state)
                            .unwrap_or_default()
                            .as_str()
                            .unwrap_or("?")
                    ));
                }
            }
        }
    }
    Ok(())
}
