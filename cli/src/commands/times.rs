//! Where the time of a node went: its job ran for some of it; the rest it waited, for a runner, a retry or a person.

use chrono::{DateTime, TimeDelta, Utc};
use control_plane_api::NodeRun;

use crate::render::duration;

/// Less is not worth a word.
const WORTH: TimeDelta = TimeDelta::seconds(1);

/// The time of a node run so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// From its first hand-over on, what its jobs did not run.
    pub waited: TimeDelta,
    /// What its jobs ran; of what is no job, all of it.
    pub ran: TimeDelta,
}

impl Times {
    /// Of `run` as of `now`; `None` before it began.
    pub fn of(run: &NodeRun, now: DateTime<Utc>) -> Option<Self> {
        let whole = (run.ended_at.unwrap_or(now) - run.started_at?).max(TimeDelta::zero());
        if run.kind != "job" {
            return Some(Self {
                waited: TimeDelta::zero(),
                ran: whole,
            });
        }
        // Spans, not moments: each is by one clock, and the clocks of runners may differ from ours.
        let of_this_run = run.attempts.iter().filter(|attempt| attempt.run == run.run);
        let spans = of_this_run.filter_map(|attempt| {
            let end = attempt.finished_at.unwrap_or(now);
            attempt.started_at.map(|start| (end - start).max(TimeDelta::zero()))
        });
        let ran = spans.fold(TimeDelta::zero(), |all, span| all + span).min(whole);
        Some(Self {
            waited: whole - ran,
            ran,
        })
    }

    /// As it stands behind a state: `24s`, `24s, waited 3.1s`.
    pub fn text(self) -> String {
        match self.waited >= WORTH {
            true => format!("{}, waited {}", duration(self.ran), duration(self.waited)),
            false => duration(self.ran),
        }
    }
}

/// On which runner the node's job runs now.
pub fn runner(run: &NodeRun) -> Option<&str> {
    let last = run.attempts.last()?;
    last.finished_at.is_none().then_some(last.runner.as_deref()).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    fn node(kind: &str, attempts: Value) -> NodeRun {
        serde_json::from_value(json!({
            "node_id": "a", "template_node": "a", "title": "", "kind": kind, "state": "succeeded", "run": 1,
            "plan_revision": 1, "started_at": at(0), "ended_at": at(30), "attempts": attempts,
        }))
        .unwrap()
    }

    fn attempt(run: u32, started: Option<i64>, finished: Option<i64>) -> Value {
        json!({
            "attempt_id": uuid::Uuid::now_v7(), "run": run, "number": 1, "state": "ended", "dispatched_at": at(0),
            "started_at": started.map(at), "finished_at": finished.map(at), "runner": "r1",
        })
    }

    fn seconds(run: &NodeRun) -> (i64, i64) {
        let times = Times::of(run, at(30)).unwrap();
        (times.waited.num_seconds(), times.ran.num_seconds())
    }

    #[test]
    fn the_queue_is_not_counted_as_work() {
        let run = node("job", json!([attempt(1, Some(20), Some(28))]));
        assert_eq!(seconds(&run), (22, 8));
        assert_eq!(Times::of(&run, at(30)).unwrap().text(), "8.0s, waited 22s");
    }

    #[test]
    fn every_attempt_of_the_run_counts_and_none_of_an_earlier_one() {
        let attempts = json!([
            attempt(0, Some(1), Some(9)),
            attempt(1, Some(10), Some(15)),
            attempt(1, None, Some(16)),
            attempt(1, Some(20), Some(25)),
        ]);
        assert_eq!(seconds(&node("job", attempts)), (20, 10));
    }

    #[test]
    fn a_runner_whose_clock_is_elsewhere_bends_nothing() {
        let run = node("job", json!([attempt(1, Some(9_000), Some(9_029))]));
        assert_eq!(seconds(&run), (1, 29));
        let run = node("job", json!([attempt(1, Some(500), Some(400))]));
        assert_eq!(seconds(&run), (30, 0));
    }

    #[test]
    fn what_is_no_job_has_no_queue_and_what_has_not_begun_no_time() {
        assert_eq!(seconds(&node("gate", json!([]))), (0, 30));
        let mut run = node("job", json!([]));
        run.started_at = None;
        assert_eq!(Times::of(&run, at(30)), None);
    }

    #[test]
    fn a_job_that_runs_names_its_runner() {
        assert_eq!(runner(&node("job", json!([attempt(1, Some(1), None)]))), Some("r1"));
        assert_eq!(runner(&node("job", json!([attempt(1, Some(1), Some(2))]))), None);
    }
}
