//! Why nodes that were handed over do not run yet: control-plane knows only that they were, so
//! execution-plane is asked about their attempts.

use chrono::{DateTime, TimeDelta, Utc};
use control_plane_api::{AttemptView, NodeRun, NodeRunState};
use execution_plane_api::AttemptState;
use futures::StreamExt as _;

use crate::platform::Platform;
use crate::render::age;

/// A hand-over that takes longer than this has a reason.
const LONG: TimeDelta = TimeDelta::seconds(3);
/// More than this is not asked about at once; their reasons are the same.
const ASKED: usize = 20;

/// A node whose attempt is queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stalled {
    pub node: String,
    /// What its attempt waits for.
    pub why: String,
    since: DateTime<Utc>,
}

impl Stalled {
    /// As a line for people.
    pub fn line(&self) -> String {
        format!(
            "◷ {} waits in the queue of execution-plane, for {}: {}",
            self.node,
            age(self.since, Utc::now()),
            self.why
        )
    }
}

/// The nodes of `runs` that have waited long for a runner. An execution-plane that does not answer, or not
/// this caller, makes the list shorter: the reason is a help, not the answer.
pub async fn stalled(runs: &[NodeRun], platform: &Platform) -> Vec<Stalled> {
    let now = Utc::now();
    let waiting: Vec<(&str, &AttemptView)> = runs
        .iter()
        .filter_map(|run| handed_over(run, now))
        .take(ASKED)
        .collect();
    let asked = futures::stream::iter(waiting).map(|(node, view)| async move {
        let attempt = platform.execution.attempt(view.attempt_id).await.ok()?;
        let queued = attempt.summary.state == AttemptState::Queued;
        let why = attempt.waiting_for.filter(|_| queued)?;
        Some(Stalled {
            node: node.to_owned(),
            why,
            since: view.dispatched_at,
        })
    });
    let found: Vec<Option<Stalled>> = asked.buffered(4).collect().await;
    found.into_iter().flatten().collect()
}

/// The node and its last attempt, when that was handed over long ago and does not run.
fn handed_over(run: &NodeRun, now: DateTime<Utc>) -> Option<(&str, &AttemptView)> {
    let last = run.attempts.last()?;
    let long = run.state == NodeRunState::Dispatched && now - last.dispatched_at > LONG;
    long.then_some((run.node_id.as_str(), last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_handed_over_long_ago_is_asked_about() {
        let now = Utc::now();
        let run = |state: &str, seconds: i64| -> NodeRun {
            serde_json::from_value(serde_json::json!({
                "node_id": "a", "template_node": "a", "title": "", "kind": "job", "state": state, "run": 1, "plan_revision": 1,
                "attempts": [{
                    "attempt_id": uuid::Uuid::now_v7(), "run": 1, "number": 1, "state": "accepted",
                    "dispatched_at": now - TimeDelta::seconds(seconds),
                }],
            }))
            .unwrap()
        };
        assert!(handed_over(&run("dispatched", 4), now).is_some());
        assert!(handed_over(&run("dispatched", 2), now).is_none());
        assert!(handed_over(&run("running", 60), now).is_none());
    }
}
