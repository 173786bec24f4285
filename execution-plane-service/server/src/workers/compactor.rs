//! Frees the database of output that a log bundle holds.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::core::Hot;
use crate::store::compactions;

/// Between looks; a second kept twice for this long is cheap.
const PAUSE: Duration = Duration::from_secs(10);
const AT_ONCE: i64 = 64;

/// Runs until `shutdown`.
pub async fn run(hot: Arc<Hot>, shutdown: CancellationToken) {
    loop {
        match compactions::compact(&hot.worker, AT_ONCE).await {
            // There may be more.
            Ok(count) if i64::try_from(count).is_ok_and(|count| count == AT_ONCE) => continue,
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "outputs could not be compacted"),
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}
