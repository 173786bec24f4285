//! Sending chunks until the service has acknowledged all of them.

use std::time::Duration;

use client_kit::{ClientError, Retries};
use execution_plane_api::{OutputUploadRequest, problem_codes};
use tokio_util::sync::CancellationToken;

use super::sink::OutputSink;
use crate::attempt::Active;
use crate::runner::{Runner, is_not_ours};
use crate::standing::Standing;

/// Chunks are gathered for so long before they go.
const GATHER: Duration = Duration::from_millis(25);
const PATIENCE: Retries = Retries {
    tries: u32::MAX,
    first_pause: Duration::from_millis(100),
    longest_pause: Duration::from_secs(3),
};

/// How sending ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Everything is durable at the service.
    All,
    /// The attempt is not this runner's, as far as is known.
    Not(Standing),
}

/// Sends what `sink` has and gets, until `complete` and nothing is left.
pub(crate) async fn send(runner: Runner, active: &Active, sink: OutputSink, complete: CancellationToken) -> Sent {
    let mut acknowledged = 0;
    let mut failed = 0;
    loop {
        let last_round = complete.is_cancelled();
        sink.cut();
        let chunks = match sink.after(acknowledged) {
            Ok(chunks) => chunks,
            Err(error) => {
                tracing::error!(attempt = %active.id, %error, "the output spool cannot be read");
                return Sent::All;
            }
        };
        if chunks.is_empty() {
            if last_round {
                return Sent::All;
            }
            tokio::select! {
                () = complete.cancelled() => {}
                () = gathered(&sink) => {}
            }
            continue;
        }
        let request = OutputUploadRequest {
            epoch: active.epoch,
            chunks,
        };
        match runner.client.output(active.id, &request).await {
            Ok(answer) => {
                acknowledged = answer.acknowledged_sequence.max(acknowledged);
                failed = 0;
                failpoints::hit("runner.output.sent");
            }
            Err(error) => {
                if is_not_ours(&error) {
                    match runner.standing(active).await {
                        Standing::Ours => {}
                        known => return Sent::Not(known),
                    }
                }
                if let Some(expected) = expected_sequence(&error) {
                    acknowledged = expected.saturating_sub(1);
                }
                failed += 1;
                tracing::debug!(attempt = %active.id, %error, failed, "output was not taken; trying again");
                tokio::time::sleep(PATIENCE.pause(failed)).await;
            }
        }
    }
}

async fn gathered(sink: &OutputSink) {
    sink.changed().await;
    tokio::time::sleep(GATHER).await;
}

/// Where the service wants to go on, when it says so.
fn expected_sequence(error: &ClientError) -> Option<u64> {
    let problem = error
        .problem()
        .filter(|problem| problem.code == problem_codes::OUTPUT_GAP)?;
    problem.extensions.get("expected_sequence")?.as_u64()
}
