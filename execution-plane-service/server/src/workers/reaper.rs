//! Declares attempts lost whose runner did not come back.
//!
//! "Reachable" is judged by the database's clock between two looks: after a restart, a pause of the
//! process or an outage of the database, the time for coming back begins anew, because runners could
//! not renew meanwhile.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use execution_plane_domain::routing::fair_order;
use tokio_util::sync::CancellationToken;

use crate::core::Hot;
use crate::store::StoreError;
use crate::store::lost::{self, Cause};

/// Between looks.
const PAUSE: Duration = Duration::from_secs(1);
/// A longer time between two looks counts as an outage.
const OUTAGE: TimeDelta = TimeDelta::seconds(5);
const AT_ONCE: i64 = 256;

/// Since when the service has been reachable without a break.
#[derive(Debug, Clone, Copy)]
struct Reachable {
    since: DateTime<Utc>,
    looked_at: DateTime<Utc>,
}

impl Reachable {
    fn look(earlier: Option<Self>, now: DateTime<Utc>) -> Self {
        match earlier {
            Some(earlier) if now - earlier.looked_at <= OUTAGE => Self {
                looked_at: now,
                ..earlier
            },
            _ => Self {
                since: now,
                looked_at: now,
            },
        }
    }
}

/// Runs until `shutdown`.
pub async fn run(hot: Arc<Hot>, shutdown: CancellationToken) {
    let mut reachable = None;
    loop {
        match look(&hot, reachable).await {
            Ok(now) => reachable = Some(now),
            Err(error) => {
                tracing::warn!(%error, "overdue leases could not be looked at");
                reachable = None;
            }
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

async fn look(hot: &Hot, earlier: Option<Reachable>) -> Result<Reachable, StoreError> {
    let reachable = Reachable::look(earlier, lost::now(&hot.worker).await?);
    // Nothing can be lost before runners had their time: then nothing is looked at either.
    if !hot
        .config
        .lease
        .is_lost(reachable.since, reachable.since, reachable.looked_at)
    {
        return Ok(reachable);
    }
    let overdue = lost::overdue(&hot.worker, &hot.config.lease, AT_ONCE).await?;
    let cause = Cause::Overdue {
        available_since: reachable.since,
    };
    for (organization, attempt) in fair_order(overdue) {
        // One that fails keeps no other from being declared; it is found again.
        if let Err(error) = hot.declare_lost(&hot.worker, organization, attempt, cause).await {
            tracing::warn!(%error, %attempt, "an overdue attempt could not be declared lost");
        }
    }
    Ok(reachable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_note_40_an_outage_starts_the_time_for_coming_back_anew() {
        let second = |n| DateTime::UNIX_EPOCH + TimeDelta::seconds(n);
        let start = Reachable::look(None, second(100));
        let steady = Reachable::look(Some(start), second(101));
        assert_eq!(steady.since, second(100));
        let after_outage = Reachable::look(Some(steady), second(110));
        assert_eq!(after_outage.since, second(110));
    }
}
