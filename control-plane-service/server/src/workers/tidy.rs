//! Deletes what is done: rows of effects whose operation takes no further turn, and idempotency keys
//! older than a week. Idempotent; losing a round costs nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::engine::Engine;

const EFFECTS: Duration = Duration::from_secs(2);
const KEYS: u32 = 900;

/// Tidies until `shutdown`.
pub async fn run(engine: Arc<Engine>, shutdown: CancellationToken) {
    let mut round = 0_u32;
    while shutdown
        .run_until_cancelled(tokio::time::sleep(EFFECTS))
        .await
        .is_some()
    {
        if let Err(error) = engine.delete_done_effects().await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "done effects are kept for now"
            );
        }
        round = (round + 1) % KEYS;
        if round == 0
            && let Err(error) = api_kit::idempotency_hot::reap(engine.database()).await
        {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "old idempotency keys are kept for now"
            );
        }
    }
    // What is done is not done again by the next process.
    if let Err(error) = engine.delete_done_effects().await {
        tracing::info!(
            error = &error as &dyn std::error::Error,
            "done effects are left to the next process"
        );
    }
}
